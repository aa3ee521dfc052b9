// Keeps the page up to date: it is read again every few seconds, and each part with `data-live` that differs is
// replaced. Without this script every page works all the same, and is read by hand.

const indicator = document.querySelector('.live');
const banner = document.querySelector('.off');
/** What the server sent of each part; what the page has may be changed by the reader, such as an opened section. */
const sent = new Map();
let isReading = false;
/** Why what is shown may be old; undefined: the last read succeeded. */
let problem;
/** When the server sent what is shown. */
let readAt = Date.now();
let next;
/** Whether a click waits for the server's answer. */
let isAsking = false;
const WAIT = 'It is read again by itself.';
let advice = WAIT;

const READ_EVERY_MS = 5_000;
const READ_MS = 15_000;
const CLICK_MS = 3_000;

const parts = (root) => [...root.querySelectorAll('[data-live]')];
/** How long ago something was changes by itself. */
const comparable = (part) => part.outerHTML.replace(/(<time[^>]*>)[^<]*/g, '$1');

function tell(found) {
  problem = found;
  if (found === undefined) advice = WAIT;
  tellTimes();
  if (!indicator || !banner) return;
  indicator.dataset.state = found === undefined ? 'on' : 'off';
  indicator.textContent = found === undefined ? 'live' : 'off';
  const at = new Date(readAt).toISOString().slice(11, 19);
  const text = found === undefined ? '' : `Off: ${found}. This page was read at ${at} UTC. ${advice}`;
  // Screen readers read each change.
  if (banner.textContent !== text) banner.textContent = text;
  banner.hidden = found === undefined;
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

/** Shows what the server has now, and again after a pause, while the page is visible. What fails says why. */
async function read() {
  if (isReading || document.hidden) return;
  isReading = true;
  clearTimeout(next);
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), READ_MS);
  try {
    const headers = { 'X-Console-Refresh': '1' };
    const response = await fetch(location.href, { headers, signal: patience.signal });
    if (response.redirected || response.status === 401) return location.reload();
    if (!response.ok) return tell(`the server answers ${response.status}`);
    update(await response.text());
    readAt = Date.now();
    tell(undefined);
  } catch {
    tell(patience.signal.aborted ? 'the server is silent' : 'no connection');
  } finally {
    clearTimeout(timer);
    isReading = false;
    readLater();
  }
}

function readLater() {
  clearTimeout(next);
  if (!document.hidden) next = setTimeout(read, READ_EVERY_MS);
}

function update(text) {
  const fresh = new DOMParser().parseFromString(text, 'text/html');
  for (const part of parts(document)) {
    const next = fresh.getElementById(part.id);
    if (next === null || isInUse(part)) continue;
    const changed = comparable(next);
    if (sent.get(part.id) === changed) continue;
    sent.set(part.id, changed);
    replace(part, document.adoptNode(next));
  }
}

/** While the server does not answer, a click would replace this page by an error page of the browser. */
async function follow(event, go) {
  if (problem === undefined || event.defaultPrevented) return;
  event.preventDefault();
  if (isAsking) return;
  isAsking = true;
  // The script is served without a session or the database.
  const asked = fetch(import.meta.url, { cache: 'no-store', signal: AbortSignal.timeout(CLICK_MS) });
  const answers = await asked.then(({ ok }) => ok).catch(() => false);
  isAsking = false;
  if (answers) return go();
  advice = 'Your click did nothing: repeat it once the server answers.';
  tell(problem ?? 'no connection');
}

const steps = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** The same words as the server's. What may be old does not age. */
function tellTimes() {
  const now = problem === undefined ? Date.now() : readAt;
  for (const time of document.querySelectorAll('time[data-ago]')) {
    const seconds = Math.round((now - Date.parse(time.dateTime)) / 1000);
    const [size, unit] = steps.find(([step]) => Math.abs(seconds) >= step) ?? [1, 's'];
    const text = `${Math.round(Math.abs(seconds) / size)} ${unit}`;
    time.textContent = seconds < 0 ? `in ${text}` : `${text} ago`;
  }
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href]');
  if (!link || link.origin !== location.origin || event.button !== 0) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  void follow(event, () => location.assign(link.href));
});
document.addEventListener('submit', (event) => void follow(event, () => event.target.submit()));
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches?.('input, select, textarea')) return;
  event.preventDefault();
  document.querySelector('.search input')?.focus();
});
setInterval(tellTimes, 10_000);
tellTimes();

// A page without such parts, such as the login, stays as it is.
if (parts(document).length > 0) {
  for (const part of parts(document)) sent.set(part.id, comparable(part));
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) void read();
  });
  addEventListener('online', () => void read());
  addEventListener('offline', () => tell('no connection'));
  tell(undefined);
  readLater();
}
