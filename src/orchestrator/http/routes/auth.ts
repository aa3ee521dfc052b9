import { createRoute } from '@hono/zod-openapi';
import { ApiError } from '../../../contract/errors.ts';
import { tokenRequestSchema, tokenSchema } from '../../../contract/token.ts';
import { issueToken } from '../../accounts/issue-token.ts';
import type { HttpDeps } from '../deps.ts';
import { errorResponses } from '../error-responses.ts';
import { createRouter, jsonContent } from './router.ts';

const issueTokenRoute = createRoute({
  method: 'post',
  path: '/auth/token',
  operationId: 'issueToken',
  summary: 'Exchange a credential for a short-lived token',
  tags: ['Authentication'],
  security: [],
  request: { body: { required: true, content: jsonContent(tokenRequestSchema) } },
  responses: {
    200: {
      description: 'A token that dies with the credential that bought it.',
      content: jsonContent(tokenSchema),
    },
    ...errorResponses('unauthorized', 'payload_too_large', 'request_timeout'),
  },
});

/** O: Authentication (optional). */
export function authRoutes(deps: HttpDeps) {
  const { rateLimits } = deps;
  return createRouter().openapi(issueTokenRoute, async (context) => {
    const request = context.req.valid('json');
    const address = context.env?.incoming?.socket.remoteAddress ?? 'unknown';
    const login = () => rateLimits.admitLogin({ address, username: request.username });
    // A right API key is never refused for another's failures: 256 random bits need no protection from guessing.
    const takeBack = request.api_key === undefined ? login() : undefined;
    context.header('Cache-Control', 'no-store');
    try {
      const token = await issueToken(deps, request);
      takeBack?.();
      return context.json(token, 200);
    } catch (error) {
      const isWrong = error instanceof ApiError && error.code === 'unauthorized';
      if (!isWrong) takeBack?.();
      else if (takeBack === undefined) login();
      throw error;
    }
  });
}
