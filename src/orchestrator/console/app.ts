import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { HTTPException } from 'hono/http-exception';
import { ApiError } from '../../contract/errors.ts';
import { clientAddress } from '../../http/wire/client-address.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Actor } from '../model/operator.ts';
import { StoreUnavailable } from '../model/store.ts';
import { audit } from '../operate/audit.ts';
import { asset, isAssetName } from './assets.ts';
import type { ConsoleDeps, ConsoleEnv, Page, PageRequest } from './deps.ts';
import { type FormRequest, forms } from './forms.ts';
import { framed, loginPage, problemPage } from './frame/layout.ts';
import { html } from './frame/parts.ts';
import { LiveStreams } from './live-streams.ts';
import { pages } from './pages/pages.ts';
import { isSameOrigin, secureReplies, toOwnPath } from './protect.ts';
import { isOwnForm, SESSION_MS, type Session, Sessions } from './sessions.ts';

/** A form of the console has some short fields. */
const MAX_FORM_BYTES = 64 * 1024;
const REFRESH = 'x-console-refresh';

export interface Console {
  app: Hono<ConsoleEnv>;
  /** Ends the streams of open pages: the server drains. */
  close(): void;
}

/** The operator's pages, under `/console` of the admin listener. */
export function createConsole(deps: ConsoleDeps): Console {
  const sessions = new Sessions(deps);
  const streams = new LiveStreams(deps);
  const app = new Hono<ConsoleEnv>().basePath('/console');
  app.use(secureReplies());
  app.use(bodyLimit({ maxSize: MAX_FORM_BYTES }));
  app.use(async (context, next) => {
    const forwarded = context.req.header('x-forwarded-for');
    const remote = context.env?.incoming?.socket.remoteAddress;
    context.set('address', clientAddress(remote, forwarded, deps.trustedProxies));
    return next();
  });
  app.onError((error, context) => respondToError(deps, context, error));
  app.get('/assets/:name', (context) => {
    const name = context.req.param('name');
    if (!isAssetName(name)) return context.notFound();
    const { type, text } = asset(name);
    return context.body(text, 200, { 'Content-Type': type, 'Cache-Control': 'no-cache' });
  });
  app.get('/login', (context) => context.html(loginPage({ next: toOwnPath(context.req.query('next')) })));
  app.post('/login', (context) => logIn(deps, sessions, context));
  app.use(async (context, next) => {
    const session = await sessionOf(deps, sessions, context);
    if (session === undefined) return askForLogin(context);
    context.set('session', session);
    return next();
  });
  app.get('/events', (context) => {
    const secret = getCookie(context, cookieName(context));
    const isAllowed = async (): Promise<boolean> =>
      (await liveSession(deps, sessions, secret).catch(() => undefined)) !== undefined;
    const body = streams.open(isAllowed, context.req.raw.signal);
    if (body === null) return context.text('Too many pages are open, or the server is draining.', 503);
    return context.body(body, 200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
  });
  app.post('*', async (context, next) => {
    const form = await context.req.parseBody();
    if (isSameOrigin(context) && isOwnForm(context.get('session'), form['csrf'])) return next();
    return context.html(
      problemPage(
        'Not done',
        'This form is not of this session. Go back, read the page again and send it again.',
      ),
      403,
    );
  });
  app.post('/logout', (context) => {
    sessions.end(getCookie(context, cookieName(context)));
    deleteCookie(context, cookieName(context), { path: '/console' });
    return context.redirect('/console/login', 303);
  });
  for (const [path, action] of forms)
    app.post(path, async (context) => context.redirect(await action(deps, await formOf(context)), 303));
  for (const [path, page] of pages) app.get(path, (context) => show(deps, context, page));
  app.all('*', (context) => context.html(problemPage('Not found', 'There is no such page.'), 404));
  return { app, close: () => streams.close() };
}

async function formOf(context: Context<ConsoleEnv>): Promise<FormRequest> {
  const fields = await context.req.parseBody();
  const { operator: name } = context.get('session');
  return {
    actor: { name, source: 'console', address: context.get('address') },
    field: (field) => {
      const value = fields[field];
      return typeof value === 'string' && value !== '' ? value : undefined;
    },
  };
}

async function show(deps: ConsoleDeps, context: Context<ConsoleEnv>, page: Page): Promise<Response> {
  const session = context.get('session');
  const request: PageRequest = {
    now: deps.clock.now(),
    session,
    params: context.req.param() as Record<string, string>,
    query: (name) => context.req.query(name)?.trim() || undefined,
  };
  const [content, alarms] = await Promise.all([page(deps, request), deps.store.read.alarms.list()]);
  if (content === null)
    return context.html(problemPage('Not found', 'There is no such thing any more.'), 404);
  const { path } = context.req;
  return context.html(
    framed({
      ...content,
      path,
      operator: session.operator,
      csrf: session.csrf,
      alarms: {
        count: alarms.length,
        unacknowledged: alarms.filter(({ acknowledgedBy }) => acknowledgedBy === null).length,
      },
      server: deps.server,
      version: deps.version,
      search: request.query('q') ?? '',
    }),
  );
}

async function logIn(deps: ConsoleDeps, sessions: Sessions, context: Context<ConsoleEnv>): Promise<Response> {
  const { store, clock } = deps;
  if (!isSameOrigin(context))
    return context.html(problemPage('Not done', 'Sign in on the page itself.'), 403);
  const form = await context.req.parseBody();
  const next = toOwnPath(typeof form['next'] === 'string' ? form['next'] : undefined);
  const secret = typeof form['key'] === 'string' ? form['key'].trim() : '';
  const key = await deps.operators.ofKey(secret);
  if (key === null) {
    deps.log.warn({ address: context.get('address') }, 'a login to the console was refused');
    return context.html(loginPage({ next, problem: 'That is no operator key, or it was revoked.' }), 401);
  }
  const actor: Actor = { name: key.name, source: 'console', address: context.get('address') };
  await store.transact((tx) => audit(tx, clock, actor, { action: 'console.login' }));
  setCookie(context, cookieName(context), sessions.begin(key), {
    path: '/console',
    httpOnly: true,
    sameSite: 'Strict',
    // The listener itself has no TLS: a proxy before it may.
    secure: context.req.header('x-forwarded-proto') === 'https',
    maxAge: SESSION_MS / 1000,
  });
  return context.redirect(next, 303);
}

/** Cookies are of a host whatever the port: two servers on one host have two names. */
function cookieName(context: Context): string {
  return `berth_console_${/:(\d+)$/.exec(context.req.header('host') ?? '')?.[1] ?? '0'}`;
}

function sessionOf(
  deps: ConsoleDeps,
  sessions: Sessions,
  context: Context<ConsoleEnv>,
): Promise<Session | undefined> {
  return liveSession(deps, sessions, getCookie(context, cookieName(context)));
}

/** Ends with its key. Rejects while the store does not answer. */
async function liveSession(
  { operators }: Pick<ConsoleDeps, 'operators'>,
  sessions: Sessions,
  secret: string | undefined,
): Promise<Session | undefined> {
  const session = sessions.find(secret);
  if (session === undefined) return undefined;
  if ((await operators.ofId(session.keyId)) !== null) return session;
  sessions.end(secret);
  return undefined;
}

function askForLogin(context: Context<ConsoleEnv>): Response {
  const { method, path, url } = context.req;
  if (path === '/console/events' || context.req.header(REFRESH) !== undefined)
    return context.text('The session has ended.', 401);
  const next = method === 'GET' ? `${path}${new URL(url).search}` : '/console';
  return context.redirect(
    next === '/console' ? '/console/login' : `/console/login?next=${encodeURIComponent(next)}`,
    303,
  );
}

function respondToError(
  { log }: ConsoleDeps,
  context: Context<ConsoleEnv>,
  error: Error,
): Response | Promise<Response> {
  if (error instanceof HTTPException) return error.getResponse();
  if (error instanceof Fatal || (error instanceof ApiError && error.status < 500))
    return context.html(problemPage('Not done', error.message), 409);
  if (error instanceof StoreUnavailable)
    return context.html(
      problemPage(
        'The database does not answer',
        html`<p>Berth keeps what it has promised, sells nothing more and goes on by itself when the database is back.
Nothing needs a restart.</p><ul><li>SQLite: is there room on its disk? <code>df -h</code></li>
<li>PostgreSQL: does it take connections? <code>psql</code> with the URL of the configuration</li></ul>`,
      ),
      503,
    );
  log.error({ err: error, path: context.req.path.slice(0, 200) }, 'a page of the console failed');
  return context.html(
    problemPage(
      'This page failed',
      'The log of the server has the reason: search it for “a page of the console failed”.',
    ),
    500,
  );
}
