import type { Context, MiddlewareHandler } from 'hono';

/** Nothing inline and nothing from elsewhere: what is injected into a page neither runs nor loads. */
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

/** Of every reply of the console. */
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
 * Whether a page of the console sent the request: by what the browser says of it. A program that is no browser says nothing,
 * and has no cookie that a stranger's page could use.
 */
export function isSameOrigin({ req }: Context): boolean {
  const site = req.header('sec-fetch-site');
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  const origin = req.header('origin');
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === req.header('host');
}

/** Where to go after the login: a page of the console, or its first one. */
export function toOwnPath(path: string | undefined): string {
  return path !== undefined && /^\/console(?:[/?][\w\-./?=&%+~:]*)?$/.test(path) && !path.includes('//')
    ? path
    : '/console';
}
