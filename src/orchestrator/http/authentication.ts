import type { MiddlewareHandler } from 'hono';
import type { Authenticator } from '../accounts/authenticate.ts';
import type { HttpEnv } from './deps.ts';

/** O: Endpoints: "Every endpoint except POST /auth/token requires the bearer credential." */
export function authentication(authenticator: Authenticator): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    const authorization = context.req.header('authorization');
    context.set(
      'principal',
      authenticator.remembered(authorization) ?? (await authenticator.authenticate(authorization)),
    );
    return next();
  };
}
