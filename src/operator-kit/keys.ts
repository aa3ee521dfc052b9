import { ApiError } from '../contract/errors.ts';
import { bearerToken, describeApiKey, digestSecret, generateOperatorKey } from '../keys/api-key.ts';
import { KeyUses } from '../keys/key-uses.ts';
import type { Clock, Random } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type {
  Actor,
  AuditWriter,
  OperatorKeyReader,
  OperatorKeyRecord,
  OperatorKeyWriter,
  Role,
} from './model.ts';
import { RefusedSignIns } from './refused-sign-ins.ts';

interface Deps {
  store: Pick<KeyStore, 'transact'>;
  clock: Clock;
  /** The command that creates and lists keys. */
  command?: string;
}

const COMMAND = 'berth operators';

export interface KeyStore {
  transact<T>(body: (tx: { operatorKeys: OperatorKeyWriter; audit: AuditWriter }) => Promise<T>): Promise<T>;
  read: { operatorKeys: OperatorKeyReader };
}

type From = Pick<Actor, 'source' | 'address'>;

const NAME = /^[a-z0-9][a-z0-9._@-]{0,62}$/;

/**
 * Creates a key for the operator's API and console, and returns it. The key is not stored and cannot be shown again.
 * @throws {ApiError} `invalid_request` if the name is invalid.
 */
export async function createOperatorKey(
  { store, clock, random }: Deps & { random: Random },
  { name, role = 'admin' }: { name: string; role?: Role },
): Promise<{ key: string; record: OperatorKeyRecord }> {
  if (!NAME.test(name))
    throw new ApiError(
      'invalid_request',
      `"${name}" is not a valid operator name: use 1 to 63 of a-z 0-9 . _ @ - and begin with a letter or digit.`,
    );
  const key = generateOperatorKey(random);
  const record: OperatorKeyRecord = {
    id: `op-${random.bytes(6).toString('hex')}`,
    name,
    role,
    digest: digestSecret(key),
    ...describeApiKey(key),
    createdAt: clock.now(),
    revokedAt: null,
    lastUsedAt: null,
  };
  await store.transact((tx) => tx.operatorKeys.insert(record));
  return { key, record };
}

/** Revokes a key, and ends its console sessions. Revoking twice keeps the first time. @throws {ApiError} `not_found` */
export async function revokeOperatorKey(
  { store, clock, command = COMMAND }: Deps,
  id: string,
): Promise<OperatorKeyRecord & { revokedAt: number }> {
  return store.transact(async (tx) => {
    const record = await tx.operatorKeys.byId(id);
    if (record === null)
      throw new ApiError('not_found', `There is no operator key "${id}": see \`${command} list\`.`);
    if (record.revokedAt !== null) return { ...record, revokedAt: record.revokedAt };
    const revokedAt = clock.now();
    await tx.operatorKeys.revoke(id, revokedAt);
    return { ...record, revokedAt };
  });
}

/** Authenticates operators by their keys. A key is looked up at each request, so revoking it takes effect at once. */
export class Operators {
  readonly #store: KeyStore;
  readonly #clock: Clock;
  readonly #uses = new KeyUses();
  readonly #command: string;
  readonly #refused: RefusedSignIns;
  readonly #log: Pick<Log, 'warn'>;

  constructor(deps: { store: KeyStore; clock: Clock; log: Pick<Log, 'warn'>; command?: string }) {
    this.#refused = new RefusedSignIns(deps.clock);
    this.#log = deps.log;
    this.#command = deps.command ?? COMMAND;
    this.#store = deps.store;
    this.#clock = deps.clock;
  }

  /** @throws {ApiError} `unauthorized`. The message does not say whether a key is unknown or revoked. */
  async authenticate(authorization: string | undefined, from: From): Promise<OperatorKeyRecord> {
    const token = bearerToken(authorization);
    const record = token === undefined ? null : await this.ofKey(token, from);
    if (record !== null) return record;
    throw new ApiError(
      'unauthorized',
      authorization === undefined
        ? `Send "Authorization: Bearer <OPERATOR_KEY>": create a key with \`${this.#command} create\`.`
        : 'The credential is not the key of an operator.',
    );
  }

  /** Returns the record of a key. Null if the key is unknown or revoked: the audit log will then have a row. */
  async ofKey(key: string, from: From): Promise<OperatorKeyRecord | null> {
    const record = await this.#store.read.operatorKeys.byDigest(digestSecret(key));
    if (record?.revokedAt === null) return this.#used(record);
    const revoked = record && { operator: record.name, key: record.id };
    if (this.#refused.count(from, record?.name))
      this.#log.warn(
        { ...from, ...revoked },
        'an invalid operator key was refused; further ones are only counted for ten minutes',
      );
    return null;
  }

  /** Returns the key that opened a session, or null if it was revoked. */
  async ofId(id: string): Promise<OperatorKeyRecord | null> {
    const record = await this.#store.read.operatorKeys.byId(id);
    return record?.revokedAt === null ? this.#used(record) : null;
  }

  /**
   * Writes the collected times of last use and the refused keys. On failure they are kept for the next call. The last
   * call of a server also writes refused keys whose ten minutes are not over.
   */
  async recordUses({ isLast = false } = {}): Promise<void> {
    await this.#refused.write((body) => this.#store.transact(body), isLast);
    await this.#uses.write((uses) =>
      this.#store.transact(async (tx) => {
        for (const [id, at] of uses) await tx.operatorKeys.recordUse(id, at);
      }),
    );
  }

  #used(record: OperatorKeyRecord): OperatorKeyRecord {
    this.#uses.note(record.id, this.#clock.now());
    return record;
  }
}
