import type { Context, MiddlewareHandler } from 'hono';

/** Allows nothing inline and nothing from other origins: injected code neither runs nor loads. */
const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Sets the security headers of every reply of the console. */
export function secureReplies(): MiddlewareHandler {
  return async (context, next) => {
    await next();
    const { headers } = context.res;
    headers.set('Content-Security-Policy', POLICY);
    headers.set('X-Content-Type-Options', 'nosniff');
    headers.set('X-Frame-Options', 'DENY');
    headers.set('Cross-Origin-Opener-Policy', 'same-origin');
    headers.set('Cross-Origin-Resource-Policy', 'same-origin');
    // `no-referrer` would make the origin of a form `null`.
    headers.set('Referrer-Policy', 'same-origin');
    if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store');
  };
}

/**
 * Whether the browser's headers say that a page of the console sent the request. A request without them comes from
 * another program, which has no cookie that another site could use.
 */
export function isSameOrigin({ req }: Context): boolean {
  const site = req.header('sec-fetch-site');
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  const origin = req.header('origin');
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === req.header('host');
}

/** Any origin. */
const HERE = 'http://console.invalid';

/**
 * Returns the path to show after the login: the given page of the console, or its first page. It is parsed as a browser
 * does it, which resolves `..`, `%2e%2e` and `\`.
 */
export function toOwnPath(path: string | undefined): string {
  const { origin, pathname, search } = URL.parse(path ?? '', HERE) ?? new URL('/', HERE);
  const isOwn = origin === HERE && /^\/console(\/(?!\/)|$)/.test(pathname);
  return isOwn ? `${pathname}${search}` : '/console';
}
