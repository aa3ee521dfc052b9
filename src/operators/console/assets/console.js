// Keeps the page up to date: the server says when something may have changed, the page is read again, and each part
// with `data-live` that differs is replaced. Without this script every page works all the same, and is read by hand.

const indicator = document.querySelector('.live');
/** What the server sent of each part; what the page has may be changed by the reader, such as an opened section. */
const sent = new Map();
let stream;
let isReading = false;
let isStale = false;

const parts = (root) => [...root.querySelectorAll('[data-live]')];
/** How long ago something was changes by itself. */
const comparable = (part) => part.outerHTML.replace(/(<time[^>]*>)[^<]*/g, '$1');

function say(state, text) {
  if (!indicator) return;
  indicator.dataset.state = state;
  indicator.textContent = text;
}

function keepOpened(from, to) {
  for (const details of from.querySelectorAll('details[id]')) {
    const same = to.querySelector(`#${CSS.escape(details.id)}`);
    if (same) same.open = details.open;
  }
}

function isInUse(part) {
  const { activeElement } = document;
  if (part.contains(activeElement) && activeElement.matches('input, select, textarea')) return true;
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && part.contains(selection.anchorNode);
}

function replace(part, fresh) {
  const { activeElement } = document;
  const focused = part.contains(activeElement) ? activeElement.getAttribute('href') : null;
  keepOpened(part, fresh);
  part.replaceWith(fresh);
  fresh.classList.add('changed');
  if (focused !== null) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

async function read() {
  if (isReading) {
    isStale = true;
    return;
  }
  isReading = true;
  isStale = false;
  try {
    const response = await fetch(location.href, { headers: { 'X-Console-Refresh': '1' } });
    if (response.redirected || response.status === 401) return location.reload();
    if (!response.ok) return say('off', `the server answered ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    for (const part of parts(document)) {
      const next = fresh.getElementById(part.id);
      if (next === null || isInUse(part)) continue;
      const text = comparable(next);
      if (sent.get(part.id) === text) continue;
      sent.set(part.id, text);
      replace(part, document.adoptNode(next));
    }
    tellTimes();
    say('on', 'live');
  } catch {
    say('off', 'no connection');
  } finally {
    isReading = false;
    if (isStale) void read();
  }
}

function listen() {
  if (stream || document.hidden || !document.body.dataset.events) return;
  stream = new EventSource(document.body.dataset.events);
  stream.addEventListener('open', () => say('on', 'live'));
  stream.addEventListener('changed', () => void read());
  stream.addEventListener('bye', stop);
  stream.addEventListener('error', () => say('off', 'reconnecting'));
}

function stop() {
  stream?.close();
  stream = undefined;
}

const steps = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** The same words as the server's. */
function tellTimes() {
  const now = Date.now();
  for (const time of document.querySelectorAll('time[data-ago]')) {
    const seconds = Math.round((now - Date.parse(time.dateTime)) / 1000);
    const [size, unit] = steps.find(([step]) => Math.abs(seconds) >= step) ?? [1, 's'];
    const text = `${Math.round(Math.abs(seconds) / size)} ${unit}`;
    time.textContent = seconds < 0 ? `in ${text}` : `${text} ago`;
  }
}

for (const part of parts(document)) sent.set(part.id, comparable(part));

document.addEventListener('visibilitychange', () => {
  if (document.hidden) return stop();
  listen();
  void read();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches?.('input, select, textarea')) return;
  event.preventDefault();
  document.querySelector('.search input')?.focus();
});
setInterval(tellTimes, 10_000);
tellTimes();
listen();
