import { ApiError, refuse } from './errors.ts';
import { json, type ReferenceRequest, type WireAnswer } from './exchange.ts';
import type { Credential } from './rules.ts';
import { readBody, type World } from './world.ts';

/** The kind of credential in the Authorization header of a request. */
export function credentialOf(
  { rules, options, clock, tokens }: World,
  request: ReferenceRequest,
): Credential {
  const bearer = rules.bearerOf(request.headers['authorization']);
  if (bearer === undefined) return 'none';
  if (options.apiKeys.includes(bearer)) return 'key';
  if (options.otherAccountKeys.includes(bearer)) return 'other account';
  const expiresAtMs = tokens.get(bearer);
  if (expiresAtMs === undefined) return 'unknown';
  return clock.now() < expiresAtMs ? 'token' : 'expired';
}

export const unauthorized = (): ApiError =>
  new ApiError(401, 'unauthorized', 'The credentials are missing or invalid.');

/** POST /auth/token */
export function issueToken(world: World, request: ReferenceRequest): WireAnswer {
  const { rules, options, clock, tokens } = world;
  const body = readBody(world, request);
  refuse(rules.validateToken(body));
  if (!rules.areCredentialsGood(body as Record<string, unknown>)) throw unauthorized();
  const token = `reference-access-token-${tokens.size + 1}`;
  const lifetimeS = rules.tokenLifetimeS();
  tokens.set(token, clock.now() + lifetimeS * 1000);
  const shown = rules.showToken({
    access_token: token,
    ...(options.optionalFields && { token_type: 'Bearer' }),
    expires_in: lifetimeS,
  });
  return { ...json(200, shown), headers: { 'cache-control': 'no-store' } };
}
