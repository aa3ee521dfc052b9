import { ApiError } from '../../contract/errors.ts';
import type { Token, TokenRequest } from '../../contract/token.ts';
import { digestSecret, generateToken } from '../../keys/api-key.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { Authenticator } from './authenticate.ts';
import { isPassword } from './password.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
  authenticator: Authenticator;
  tokenTtlMs: number;
}

/**
 * O: POST /auth/token. A token can buy no further token, and dies with the key or password that bought it.
 *
 * @throws {ApiError} `unauthorized`, alike for an unknown user and a wrong password.
 */
export async function issueToken(deps: Deps, request: TokenRequest): Promise<Token> {
  const { store, clock, random, tokenTtlMs } = deps;
  const parent = await checkCredential(deps, request);
  const token = generateToken(random);
  const createdAt = clock.now();
  await store.transact((tx) =>
    tx.credentials.insertToken({
      digest: digestSecret(token),
      ...parent,
      createdAt,
      expiresAt: createdAt + tokenTtlMs,
    }),
  );
  return { access_token: token, token_type: 'Bearer', expires_in: Math.floor(tokenTtlMs / 1000) };
}

async function checkCredential(
  { store, authenticator }: Deps,
  { api_key: apiKey, username = '', password = '' }: TokenRequest,
): Promise<{ accountId: string; parentDigest: Buffer }> {
  if (apiKey !== undefined) {
    const { accountId, digest } = await authenticator.authenticate(`Bearer ${apiKey}`);
    if (!digest.equals(digestSecret(apiKey))) throw wrongCredentials();
    return { accountId, parentDigest: digest };
  }
  const account = await store.read.credentials.accountByName(username);
  const isRight = await isPassword(password, account?.passwordHash ?? null);
  if (account?.passwordHash == null || !isRight) throw wrongCredentials();
  return { accountId: account.id, parentDigest: digestSecret(account.passwordHash) };
}

function wrongCredentials(): ApiError {
  return new ApiError('unauthorized', 'The credential is not valid.');
}
