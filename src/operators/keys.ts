import { ApiError } from '../contract/errors.ts';
import { describeApiKey, digestSecret, generateOperatorKey } from '../keys/api-key.ts';
import { bearerToken } from '../keys/bearer-token.ts';
import { KeyUses } from '../keys/key-uses.ts';
import type { Clock, Random } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { Actor, AuditWriter, OperatorKeyReader, OperatorKeyRecord, OperatorKeyWriter } from './model.ts';
import { RefusedSignIns } from './refused-sign-ins.ts';

interface Deps {
  store: WritableKeys;
  clock: Clock;
  /** What makes and lists keys. */
  command?: string;
}

const COMMAND = 'berth operators';

/** What of a store has keys of operators, whatever else it has. */
interface WritableKeys {
  transact<T>(body: (tx: { operatorKeys: OperatorKeyWriter }) => Promise<T>): Promise<T>;
}

interface KeyStore {
  transact<T>(body: (tx: { operatorKeys: OperatorKeyWriter; audit: AuditWriter }) => Promise<T>): Promise<T>;
  read: { operatorKeys: OperatorKeyReader };
}

type From = Pick<Actor, 'source' | 'address'>;

const NAME = /^[a-z0-9][a-z0-9._@-]{0,62}$/;

/**
 * Makes a key of the operator's API and console, and returns it: the only time that it is seen.
 *
 * @throws {ApiError} `invalid_request` if the name is none.
 */
export async function createOperatorKey(
  { store, clock, random }: Deps & { random: Random },
  name: string,
): Promise<{ key: string; record: OperatorKeyRecord }> {
  if (!NAME.test(name))
    throw new ApiError(
      'invalid_request',
      `"${name}" is no name of an operator: use 1 to 63 of a-z 0-9 . _ @ - and begin with a letter or digit.`,
    );
  const key = generateOperatorKey(random);
  const record: OperatorKeyRecord = {
    id: `op-${random.bytes(6).toString('hex')}`,
    name,
    digest: digestSecret(key),
    ...describeApiKey(key),
    createdAt: clock.now(),
    revokedAt: null,
    lastUsedAt: null,
  };
  await store.transact((tx) => tx.operatorKeys.insert(record));
  return { key, record };
}

/** Ends a key, and every session of the console that began with it. Revoking twice keeps the first time. @throws {ApiError} `not_found` */
export async function revokeOperatorKey(
  { store, clock, command = COMMAND }: Deps,
  id: string,
): Promise<OperatorKeyRecord> {
  return store.transact(async (tx) => {
    const record = await tx.operatorKeys.byId(id);
    if (record === null)
      throw new ApiError('not_found', `There is no operator key "${id}": see \`${command} list\`.`);
    if (record.revokedAt !== null) return record;
    const revokedAt = clock.now();
    await tx.operatorKeys.revoke(id, revokedAt);
    return { ...record, revokedAt };
  });
}

/** Knows operators by their keys. A key is looked up at each request, so that a revoked one ends at once. */
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

  /** @throws {ApiError} `unauthorized`, with the same words for every reason. */
  async authenticate(authorization: string | undefined, from: From): Promise<OperatorKeyRecord> {
    const token = bearerToken(authorization);
    const record = token === undefined ? null : await this.ofKey(token, from);
    if (record !== null) return record;
    throw new ApiError(
      'unauthorized',
      authorization === undefined
        ? `Send "Authorization: Bearer <OPERATOR_KEY>": \`${this.#command} create\` makes one.`
        : 'The credential is not the key of an operator.',
    );
  }

  /** Whose key it is; null: it is none, or it is revoked, and the audit log will say so. */
  async ofKey(key: string, from: From): Promise<OperatorKeyRecord | null> {
    const record = await this.#store.read.operatorKeys.byDigest(digestSecret(key));
    if (record?.revokedAt === null) return this.#used(record);
    const revoked = record && { operator: record.name, key: record.id };
    if (this.#refused.count(from, record?.name))
      this.#log.warn(
        { ...from, ...revoked },
        'the key of an operator was refused; for a minute more is only counted',
      );
    return null;
  }

  /** The key of that id, for a session that began with it; null: it is revoked by now. */
  async ofId(id: string): Promise<OperatorKeyRecord | null> {
    const record = await this.#store.read.operatorKeys.byId(id);
    return record?.revokedAt === null ? this.#used(record) : null;
  }

  /**
   * Writes the times of last use, and the refused keys, that have come together since; kept for the next call if it cannot.
   * The last call of a server also writes the refused keys whose minute is not over.
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
