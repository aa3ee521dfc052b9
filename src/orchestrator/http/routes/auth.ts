import { createRoute } from '@hono/zod-openapi';
import { ApiError } from '../../../contract/errors.ts';
import { tokenRequestSchema, tokenSchema } from '../../../contract/token.ts';
import { jsonContent } from '../../../http/api/create-app.ts';
import type { Owner } from '../../accounts/authenticate.ts';
import { issueToken } from '../../accounts/issue-token.ts';
import { nameOf, namingRefused } from '../authentication.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors } from '../errors.ts';

const issueTokenRoute = createRoute({
  method: 'post',
  path: '/auth/token',
  operationId: 'issueToken',
  summary: 'Exchange a credential for a short-lived token',
  description:
    'For clients that do not send a long-lived key with each request: exactly one of `api_key`, or `username` with `password`. The token is sent as a bearer credential like a key, lives for `expires_in` seconds, and ends with the credential that issued it.',
  tags: ['Authentication'],
  security: [],
  request: {
    body: {
      required: true,
      content: jsonContent(tokenRequestSchema, { username: 'acme', password: 'a long password' }),
    },
  },
  responses: errors.replies(200, 'A token that expires with the credential that issued it.', tokenSchema, [
    'unauthorized',
    'quota_exceeded',
    ...errors.ofBodies,
  ]),
});

/** O: Authentication (optional). */
export function authRoutes(deps: HttpDeps) {
  const { rateLimits, failedLogins } = deps;
  return createRouter().openapi(issueTokenRoute, async (context) => {
    const request = context.req.valid('json');
    const address = context.get('network');
    const { signal } = context.req.raw;
    context.header('Cache-Control', 'no-store');
    try {
      const admit = (accountId: string) => rateLimits.admitToken(accountId);
      const name = (owner: Owner) => context.set('who', nameOf(owner));
      const issued = issueToken(deps, request, { address, signal, admit, name });
      return context.json(await namingRefused(context, issued), 200);
    } catch (error) {
      const isWrong = error instanceof ApiError && error.code === 'unauthorized';
      if (isWrong) await failedLogins.delay(request.username, address, signal);
      throw error;
    }
  });
}
