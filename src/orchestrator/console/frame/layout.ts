import { count, type Html, html, type Tone } from './parts.ts';

/** The pages, in the order of the tabs. */
const tabs = [
  { path: '/console', name: 'Fleet' },
  { path: '/console/instances', name: 'Instances' },
  { path: '/console/alarms', name: 'Alarms' },
  { path: '/console/work', name: 'Work' },
  { path: '/console/capacity', name: 'Capacity' },
  { path: '/console/cordons', name: 'Cordons' },
  { path: '/console/platforms', name: 'Platforms' },
  { path: '/console/orphans', name: 'Orphans' },
  { path: '/console/accounts', name: 'Accounts' },
  { path: '/console/audit', name: 'Audit' },
] as const;

export interface Frame {
  title: string;
  /** Of the page that is shown. */
  path: string;
  operator: string;
  csrf: string;
  /** How many alarms stand, and how many of them nobody has acknowledged. */
  alarms: { count: number; unacknowledged: number };
  server: string;
  version: string;
  search: string;
  body: Html;
}

/** A whole page of somebody who is logged in. */
export function framed(frame: Frame): Html {
  const { title, path, operator, csrf, alarms, server, version, search, body } = frame;
  const top = html`<header class="top">
<div class="bar">
<a class="brand" href="/console">Berth</a>
<form class="search" action="/console/instances" role="search">
<input type="search" name="q" value="${search}" placeholder="Find an instance: id, name, address … (press /)" aria-label="Find an instance">
</form>
<div class="who">
<span class="live" role="status">as it was read</span>
<span class="soft">${operator}</span>
<form method="post" action="/console/logout">${csrfField(csrf)}<button class="plain">Sign out</button></form>
</div>
</div>
<nav class="tabs" id="tabs" aria-label="Pages" data-live>${tabs.map((tab) => tabLink(tab, path, alarms))}</nav>
</header>`;
  const foot = html`<footer>Server ${server} · Berth ${version} · times are UTC</footer>`;
  return page(
    title,
    html`<a class="skip" href="#main">Skip to the content</a>${top}<main id="main">${body}</main>${foot}`,
    { events: '/console/events' },
  );
}

function tabLink({ path, name }: (typeof tabs)[number], shown: string, alarms: Frame['alarms']): Html {
  const isShown = path === '/console' ? shown === path : shown.startsWith(path);
  const tone: Tone = alarms.unacknowledged > 0 ? 'bad' : 'wait';
  const mark =
    name === 'Alarms' && alarms.count > 0
      ? html` <span class="count ${tone}">${count(alarms.count)}</span>`
      : '';
  return isShown
    ? html`<a href="${path}" aria-current="page">${name}${mark}</a>`
    : html`<a href="${path}">${name}${mark}</a>`;
}

/** The login: all that somebody sees who is not logged in. */
export function loginPage({ problem, next }: { problem?: string; next: string }): Html {
  return page(
    'Sign in',
    html`<main class="login"><h1>Berth console</h1>
${problem === undefined ? '' : html`<div class="notice bad" role="alert">${problem}</div>`}
<form class="card" method="post" action="/console/login">
<input type="hidden" name="next" value="${next}">
<input name="username" value="operator" autocomplete="username" hidden>
<label class="field"><span>Operator key</span><input type="password" name="key" autocomplete="current-password" required autofocus></label>
<button class="primary">Sign in</button>
<p class="small soft">On the server, <code>berth operators create NAME</code> makes one. It is no account's key.</p>
</form></main>`,
  );
}

/** What is wrong, to somebody who may be logged in or not. */
export function problemPage(title: string, text: unknown): Html {
  return page(
    title,
    html`<main class="login"><h1>${title}</h1><div class="notice bad">${text}</div><p><a href="/console">To the fleet</a></p></main>`,
  );
}

function page(title: string, body: Html, { events }: { events?: string } = {}): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Berth</title>
<link rel="stylesheet" href="/console/assets/console.css">
<link rel="icon" href="data:,">
<script type="module" src="/console/assets/console.js"></script>
</head>
<body${events === undefined ? '' : html` data-events="${events}"`}>
${body}
</body>
</html>
`;
}

/** In every form that changes something. */
export function csrfField(csrf: string): Html {
  return html`<input type="hidden" name="csrf" value="${csrf}">`;
}
