import { type Context, Hono } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { HTTPException } from 'hono/http-exception';
import { z } from 'zod';
import { clientOf } from '../../http/wire/client-address.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { audit, refusalOf } from '../audit.ts';
import type { Actor } from '../model.ts';
import { assertAllowed, type Operation } from '../operation.ts';
import { actionPage, actionPath, performForm } from './action-pages.ts';
import { asset, isAssetName } from './assets.ts';
import type { ConsoleBase, ConsoleEnv, ConsoleParts, FormRequest, Page, PageRequest } from './deps.ts';
import { readForm } from './form.ts';
import { framed, type Look, loginPage, problemPage, secretPage } from './layout.ts';
import { html } from './parts.ts';
import { isSameOrigin, secureReplies, toOwnPath } from './protect.ts';
import { isOwnForm, SESSION_MS, type Session, Sessions } from './sessions.ts';

/** How long ago a sign-in may be for what makes keys. */
const FRESH_MS = 10 * 60_000;

const SIGN_IN_AGAIN =
  'Nothing has changed: who makes a key must have signed in within the last ten minutes. Sign in again, then repeat it.';

const REFRESH = 'x-console-refresh';

/** Assembles the operator's pages of a product, under `/console` of its admin listener. */
export function assembleConsole<Deps extends ConsoleBase>(
  deps: Deps,
  parts: ConsoleParts<Deps>,
): Hono<ConsoleEnv> {
  const { look, actions, pages } = parts;
  const sessions = new Sessions(deps);
  const app = new Hono<ConsoleEnv>().basePath('/console');
  app.use(secureReplies());
  app.use(async (context, next) => {
    const forwarded = context.req.header('x-forwarded-for');
    const remote = context.env?.incoming?.socket.remoteAddress;
    const { address, network } = clientOf(remote, forwarded, deps.trustedProxies);
    context.set('address', address);
    context.set('network', network);
    await next();
    logRequest(deps.log, context);
  });
  app.onError((error, context) => respondToError(deps, look, context, error));
  app.get('/assets/:name', (context) => {
    const name = context.req.param('name');
    if (!isAssetName(name)) return context.notFound();
    const { type, text } = asset(name);
    return context.body(text, 200, { 'Content-Type': type, 'Cache-Control': 'no-cache' });
  });
  app.get('/login', (context) =>
    context.html(
      loginPage(look, {
        next: toOwnPath(context.req.query('next')),
        ...(context.req.query('again') !== undefined && { problem: SIGN_IN_AGAIN }),
      }),
    ),
  );
  app.post('/login', readForm(), (context) => logIn(deps, look, sessions, context));
  app.use(async (context, next) => {
    const session = await sessions.find(secretOf(context));
    if (session === undefined) return askForLogin(context);
    context.set('session', session);
    return next();
  });
  app.post('*', readForm(), async (context, next) => {
    // Receiving a form may take long, and its key may have been revoked meanwhile.
    if ((await sessions.find(secretOf(context))) === undefined) return askForLogin(context);
    const csrf = context.get('form').get('csrf');
    if (isSameOrigin(context) && isOwnForm(context.get('session'), csrf)) return next();
    return context.html(
      problemPage(
        look,
        'Not done',
        'This form belongs to another session. Go back, reload the page and submit the form again.',
      ),
      403,
    );
  });
  app.post('/logout', async (context) => {
    await sessions.end(secretOf(context));
    deleteCookie(context, cookieName(context), { path: '/console' });
    return context.redirect('/console/login', 303);
  });
  for (const action of actions.filter(({ form }) => form !== undefined)) {
    const path = actionPath(action.name);
    app.use(path, async (context, next) => {
      const { role, operator: name, beganAt } = context.get('session');
      // The audit log has a row of what is refused when it is to be carried out.
      if (context.req.method === 'GET') assertAllowed({ role, name }, action.needs);
      const isFresh = deps.clock.now() - beganAt < FRESH_MS;
      return action.form?.needsFreshSignIn && !isFresh ? signInAgain(context, action.form.page({})) : next();
    });
    app.get(path, (context) =>
      show(deps, parts, context, (_deps, request) => actionPage(action, deps, request)),
    );
    app.post(path, async (context) => {
      const request = { ...formOf(context), now: deps.clock.now() };
      const { next, secret } = await performForm(action, deps, request);
      return secret === undefined
        ? context.redirect(next, 303)
        : context.html(secretPage(look, secret, next));
    });
  }
  for (const operation of actions.filter(({ toCsv }) => toCsv !== undefined))
    app.get(`${operation.path}.csv`, (context) => sendCsv(deps, look, operation, context));
  for (const [path, page] of pages) app.get(path, (context) => show(deps, parts, context, page));
  app.all('*', (context) => context.html(problemPage(look, 'Not found', 'There is no such page.'), 404));
  return app;
}

/** Logs a line for each form and each refusal, as the API does. Page views are frequent and change nothing. */
function logRequest(log: Pick<Log, 'info'>, context: Context<ConsoleEnv>): void {
  const { method, path } = context.req;
  const { status } = context.res;
  if (method === 'GET' && status < 400) return;
  const session: Session | undefined = context.get('session');
  const who = session && { operator: session.operator, key: session.keyId };
  const address = context.get('address');
  log.info({ method, path: path.slice(0, 200), status, address, ...who }, 'request to the console');
}

function actorOf(context: Context<ConsoleEnv>): Actor {
  const { operator: name, role } = context.get('session');
  return { name, role, source: 'console', address: context.get('address') };
}

function formOf(context: Context<ConsoleEnv>): FormRequest {
  const fields = context.get('form');
  return {
    actor: actorOf(context),
    field: (field) => fields.get(field) || undefined,
  };
}

async function show<Deps extends ConsoleBase>(
  deps: Deps,
  { look, markTab }: ConsoleParts<Deps>,
  context: Context<ConsoleEnv>,
  page: Page<Deps>,
): Promise<Response> {
  const session = context.get('session');
  const request: PageRequest = {
    now: deps.clock.now(),
    session,
    params: context.req.param() as Record<string, string>,
    query: (name) => context.req.query(name)?.trim() || undefined,
  };
  const [content, mark] = await Promise.all([page(deps, request), markTab(deps)]);
  if (content === null) return context.html(problemPage(look, 'Not found', 'This no longer exists.'), 404);
  return context.html(
    framed(look, {
      ...content,
      path: context.req.path,
      operator: session.operator,
      role: session.role,
      csrf: session.csrf,
      mark,
      server: deps.server,
      version: deps.version,
      search: request.query('q') ?? '',
    }),
  );
}

/** Answers with a view as CSV. The query is the view's input. */
async function sendCsv<Deps extends ConsoleBase>(
  deps: Deps,
  look: Look,
  { input, perform, toCsv }: Operation<Deps>,
  context: Context<ConsoleEnv>,
): Promise<Response> {
  const asked = z.object(input).safeParse(context.req.query());
  if (!asked.success) return context.html(problemPage(look, 'Not found', z.prettifyError(asked.error)), 404);
  const reply = await perform(deps, actorOf(context), asked.data);
  return context.body(toCsv?.(reply) ?? '', 200, { 'Content-Type': 'text/csv; charset=utf-8' });
}

async function logIn(
  deps: ConsoleBase,
  look: Look,
  sessions: Sessions,
  context: Context<ConsoleEnv>,
): Promise<Response> {
  const { store, clock } = deps;
  if (!isSameOrigin(context))
    return context.html(problemPage(look, 'Not done', 'Sign in on the page itself.'), 403);
  const form = context.get('form');
  const next = toOwnPath(form.get('next') ?? undefined);
  const secret = (form.get('key') ?? '').trim();
  const from = { source: 'console', address: context.get('address') } as const;
  const key = await deps.operators.ofKey(secret, from);
  if (key === null)
    return context.html(loginPage(look, { next, problem: 'This operator key is unknown or revoked.' }), 401);
  const actor: Actor = { name: key.name, ...from };
  const session = await store.transact(async (tx) => {
    await audit(tx, clock, actor, { action: 'console.login' });
    return sessions.begin(tx, key.id);
  });
  setCookie(context, cookieName(context), session, {
    path: '/console',
    httpOnly: true,
    sameSite: 'Strict',
    // TLS is that of the listener, or of a proxy before it.
    secure: context.req.header('x-forwarded-proto') === 'https' || context.req.url.startsWith('https:'),
    maxAge: SESSION_MS / 1000,
  });
  return context.redirect(next, 303);
}

function secretOf(context: Context): string | undefined {
  return getCookie(context, cookieName(context));
}

/** Browsers share a host's cookies across ports. The port in the name separates two servers on one host. */
function cookieName(context: Context): string {
  return `berth_console_${/:(\d+)$/.exec(context.req.header('host') ?? '')?.[1] ?? '0'}`;
}

function askForLogin(context: Context<ConsoleEnv>): Response {
  const { method, path, url } = context.req;
  if (context.req.header(REFRESH) !== undefined) return context.text('The session has ended.', 401);
  const next = method === 'GET' ? `${path}${new URL(url).search}` : '/console';
  return context.redirect(
    next === '/console' ? '/console/login' : `/console/login?next=${encodeURIComponent(next)}`,
    303,
  );
}

function signInAgain(context: Context<ConsoleEnv>, page: string): Response {
  return context.redirect(`/console/login?again=1&next=${encodeURIComponent(page)}`, 303);
}

function respondToError(
  { log }: ConsoleBase,
  look: Look,
  context: Context<ConsoleEnv>,
  error: Error,
): Response | Promise<Response> {
  if (error instanceof HTTPException)
    return context.html(problemPage(look, 'Not done', error.message), error.status);
  const refusal = refusalOf(error);
  if (refusal !== undefined) return context.html(problemPage(look, 'Not done', refusal), 409);
  if (error instanceof StoreUnavailable)
    return context.html(
      problemPage(
        look,
        'The database does not answer',
        html`${context.req.method === 'POST' ? html`<p>It is unknown whether your action was carried out: check before you repeat it.</p>` : ''}<p>Berth keeps running instances, sells nothing new and resumes by itself when the database is back.
Nothing needs a restart.</p><ul><li>SQLite: is there room on its disk? <code>df -h</code></li>
<li>PostgreSQL: does it take connections? <code>psql</code> with the URL of the configuration</li></ul>`,
      ),
      503,
    );
  log.error({ err: error, path: context.req.path.slice(0, 200) }, 'a page of the console failed');
  return context.html(
    problemPage(
      look,
      'This page failed',
      'The server log has the cause: search it for “a page of the console failed”.',
    ),
    500,
  );
}
