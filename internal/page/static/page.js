// Fetches the page every 15 seconds while it is visible, and replaces what is shown. If that fails, it marks the page as stale.
'use strict';

const interval = 15000;
const usable = 'a, summary, button, input, [tabindex]';
let timer;
let skew = 0; // of the clock of this machine against that of the exporter

// keep notes what a new page does not have: open details, filled-in fields, scroll positions of tables, the focus.
function keep(live) {
  const open = [...live.querySelectorAll('details[open]')].map((d) => d.id);
  const fields = [...live.querySelectorAll('input[id]')].map((i) => [i.id, i.value, i.checked]);
  const scrolled = [...live.querySelectorAll('.scroll')].map((s) => [s.getAttribute('aria-label'), s.scrollLeft]);
  const focused = [...live.querySelectorAll(usable)].indexOf(document.activeElement);
  return (fresh) => {
    for (const id of open) {
      fresh.querySelector('#' + CSS.escape(id))?.setAttribute('open', '');
    }
    for (const [id, value, checked] of fields) {
      const i = fresh.querySelector('#' + CSS.escape(id));
      if (i) [i.value, i.checked] = [value, checked];
    }
    for (const [label, left] of scrolled) {
      const s = fresh.querySelector(`.scroll[aria-label="${CSS.escape(label)}"]`);
      if (s) s.scrollLeft = left;
    }
    if (focused >= 0) {
      fresh.querySelectorAll(usable)[focused]?.focus({preventScroll: true});
    }
  };
}

// age of what is shown, as the exporter writes it: 12s, 4m, 1h5m.
function age(live) {
  const s = Math.max(0, Math.floor((Date.now() + skew - Date.parse(live.dataset.time)) / 1000));
  if (Number.isNaN(s)) return '';
  if (s < 60) return ` ${s}s`;
  if (s < 3600) return ` ${Math.floor(s / 60)}m`;
  return ` ${Math.floor(s / 3600)}h${Math.floor(s / 60) % 60}m`;
}

function markStale(news, reason) {
  const live = document.getElementById('live');
  const word = 'STALE' + age(live);
  news.className = 'news stale';
  news.textContent = `${word}: not refreshed, ${reason}`;
  document.title = `${word} – ${document.querySelector('.host').textContent}`;
}

// reasonOf words what went wrong: fetch() throws a TypeError for any failure of the network.
function reasonOf(e) {
  if (e instanceof TypeError) return 'the exporter is unreachable';
  if (e.name === 'TimeoutError') return `no answer within ${interval / 1000}s`;
  return e.message;
}

async function refresh() {
  const news = document.getElementById('news');
  try {
    const answer = await fetch(location.pathname + location.search, {cache: 'no-store', signal: AbortSignal.timeout(interval)});
    if (!answer.ok) throw new Error(`the exporter answers HTTP ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById('live');
    if (!fresh) throw new Error('the answer is not a page of the exporter');
    skew = Date.parse(answer.headers.get('date')) - Date.now() || 0;
    const live = document.getElementById('live');
    const restore = keep(live);
    const adopted = document.adoptNode(fresh);
    live.replaceWith(adopted);
    adopted.dispatchEvent(new Event('refreshed', {bubbles: true}));
    restore(adopted);
    news.className = 'news unseen'; // for screen readers
    news.textContent = document.title === page.title ? '' : page.title;
    document.title = page.title;
  } catch (e) {
    markStale(news, reasonOf(e));
  }
}

// schedule waits for the next turn, while the page is visible.
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
