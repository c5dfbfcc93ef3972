// Puts a button that copies onto each block of commands. Pages over plain HTTP have no navigator.clipboard: there the block is selected.
'use strict';

function copy(block, button) {
  const text = block.querySelector('code')?.textContent ?? block.textContent;
  const done = (word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  };
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(() => done('Copied'), () => done('Failed'));
    return;
  }
  getSelection().selectAllChildren(block.querySelector('code') ?? block);
  done(document.execCommand('copy') ? 'Copied' : 'Selected');
}

function addButtons(root) {
  for (const block of root.querySelectorAll('pre')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', () => copy(block, button));
    block.prepend(button);
  }
}

addButtons(document);
document.addEventListener('refreshed', (e) => addButtons(e.target));
