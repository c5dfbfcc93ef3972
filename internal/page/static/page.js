// Fetches the page again each 15 seconds while somebody looks at it, and puts the new one in its place.
'use strict';

const interval = 15000;
let timer;

// keep notes what a new page would forget: what is open, how far tables are scrolled, where the focus is.
function keep(live) {
  const open = [...live.querySelectorAll('details[open]')].map((d) => d.id);
  const scrolled = [...live.querySelectorAll('.scroll')].map((s) => [s.getAttribute('aria-label'), s.scrollLeft]);
  const focused = [...live.querySelectorAll('a, summary, [tabindex]')].indexOf(document.activeElement);
  return (fresh) => {
    for (const id of open) {
      fresh.querySelector('#' + CSS.escape(id))?.setAttribute('open', '');
    }
    for (const [label, left] of scrolled) {
      const s = fresh.querySelector(`.scroll[aria-label="${CSS.escape(label)}"]`);
      if (s) s.scrollLeft = left;
    }
    if (focused >= 0) {
      fresh.querySelectorAll('a, summary, [tabindex]')[focused]?.focus({preventScroll: true});
    }
  };
}

async function refresh() {
  const news = document.getElementById('news');
  try {
    const answer = await fetch(location.pathname, {cache: 'no-store', signal: AbortSignal.timeout(interval)});
    if (!answer.ok) throw new Error(`the exporter answers ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById('live');
    if (!fresh) throw new Error('the answer is no page of the exporter');
    const live = document.getElementById('live');
    const restore = keep(live);
    const adopted = document.adoptNode(fresh);
    live.replaceWith(adopted);
    restore(adopted);
    news.classList.add('unseen'); // screen readers tell of a change
    news.textContent = document.title === page.title ? '' : page.title;
    document.title = page.title;
  } catch (e) {
    news.classList.remove('unseen');
    news.textContent = `Not refreshed: ${e.message}. What is shown is of before.`;
  }
}

// schedule waits for the next turn, while the page is seen.
function schedule() {
  clearTimeout(timer);
  if (!document.hidden) {
    timer = setTimeout(() => refresh().finally(schedule), interval);
  }
}

document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (!document.hidden) {
    refresh().finally(schedule);
  }
});
schedule();
