import { ApiError } from '../../contract/errors.ts';
import type { Token, TokenRequest } from '../../contract/token.ts';
import { digestSecret, generateToken } from '../../keys/api-key.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Store } from '../model/store.ts';
import { type Authenticator, assertHasAccess, type Owner, type Principal } from './authenticate.ts';
import type { PasswordChecks } from './password-checks.ts';
import { assertWithinQuotas, type Quotas } from './quotas.ts';

/** How long a token is valid. */
const TOKEN_TTL_MS = 3_600_000;

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
  authenticator: Authenticator;
  passwordChecks: PasswordChecks;
  quotas: Quotas;
}

/** The sender of a request, before its credential is known. */
interface Requester {
  address: string;
  /** Aborted when the client has disconnected. */
  signal: AbortSignal;
  /** Receives the owner of the credential once it is known, even if the credential is refused. */
  name: (owner: Owner) => void;
  /** Counts a token for the account. Call the returned function to undo that. @throws {ApiError} `too_many_requests` */
  admit: (accountId: string) => () => void;
}

/**
 * O: POST /auth/token. A token cannot obtain another token, and ends with the key or password that it was obtained
 * with.
 *
 * @throws {ApiError} `unauthorized`, the same for an unknown user and a wrong password; `too_many_requests` or
 *   `quota_exceeded`
 */
export async function issueToken(deps: Deps, request: TokenRequest, requester: Requester): Promise<Token> {
  const { store, clock, random, quotas } = deps;
  const parent = await checkCredential(deps, request, requester);
  const { accountId, digest: parentDigest } = parent;
  const token = generateToken(random);
  const createdAt = clock.now();
  const undoAdmission = requester.admit(accountId);
  try {
    await store.transact(async (tx) => {
      await assertHasAccess(tx, parent, createdAt);
      await assertWithinQuotas(tx, quotas, accountId, { liveTokens: 1 }, createdAt);
      await tx.credentials.insertToken({
        digest: digestSecret(token),
        accountId,
        parentDigest,
        createdAt,
        expiresAt: createdAt + TOKEN_TTL_MS,
      });
    });
  } catch (error) {
    undoAdmission();
    throw error;
  }
  return { access_token: token, token_type: 'Bearer', expires_in: Math.floor(TOKEN_TTL_MS / 1000) };
}

async function checkCredential(
  { store, authenticator, passwordChecks }: Deps,
  { api_key: apiKey, username = '', password = '' }: TokenRequest,
  requester: Requester,
): Promise<Principal> {
  if (apiKey !== undefined) {
    const principal = await authenticator.authenticate(`Bearer ${apiKey}`);
    requester.name(principal);
    if (!principal.digest.equals(digestSecret(apiKey))) throw wrongCredentials();
    return principal;
  }
  const account = await store.read.credentials.accountByName(username);
  const owner = account && ({ accountId: account.id, keyId: null, origin: 'password' } as const);
  if (owner !== null) requester.name(owner);
  const isRight = await passwordChecks.isRight(password, account?.passwordHash ?? null, requester);
  if (owner === null || account?.passwordHash == null || !isRight) throw wrongCredentials();
  return { ...owner, digest: digestSecret(account.passwordHash), expiresAt: null };
}

function wrongCredentials(): ApiError {
  return new ApiError('unauthorized', 'The credential is not valid.');
}
