import { isObject, stringField } from '../text/json.ts';
import { Draws } from '../transcript/draws.ts';
import type { RunRecord } from '../transcript/records.ts';
import type { Call } from './call.ts';
import {
  type Identity,
  type Names,
  type PlainSource,
  plainSourceOf,
  suiteIdentity,
  suiteNames,
} from './identity.ts';

/** How many names of a run are known without its ledger. */
const MOST_NAMES = 999;
const ID_DIGITS = 32;

/** The names of a plain run, as a marketplace gives them: `bm-<installation>-<32 hex digits>`. */
export function plainNames({ seed, installation }: PlainSource): Names {
  const draws = new Draws(seed);
  const nameOf = (n: number): string => `bm-${installation}-${draws.hex(`name/${n}`, ID_DIGITS)}`;
  const length = nameOf(1).length;
  let known: ReadonlySet<string> | undefined;
  return {
    nameOf,
    isOwn(name) {
      known ??= new Set(Array.from({ length: MOST_NAMES }, (_, index) => nameOf(index + 1)));
      return known.has(name.slice(0, length));
    },
    pattern: `names that begin with bm-${installation}-, and compare them with the ledger`,
  };
}

/**
 * The identity of a plain run: what a marketplace sends, and nothing of the suite. No `User-Agent`, no `X-Request-Id`; a
 * create carries an idempotency key that ends as the name does.
 */
export function plainIdentity(source: PlainSource): Identity {
  const draws = new Draws(source.seed);
  return {
    ...plainNames(source),
    userAgent: '',
    sendsRequestIds: false,
    headers({ call, authorization }) {
      const key = idempotencyKeyOf(call);
      return {
        accept: 'application/json',
        ...(authorization !== undefined && { authorization }),
        ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
        ...(call.ifNoneMatch !== undefined && { 'if-none-match': call.ifNoneMatch }),
      };
    },
    keyComment: (key) => drawKeyComment(draws, key),
  };
}

/** The identity by a plain run's source, or of a usual run without one. */
export function identityOf(runId: string, plain: PlainSource | undefined, task?: string): Identity {
  return plain === undefined ? suiteIdentity(runId, task) : plainIdentity(plain);
}

/** The names of a run, by its first record. */
export function namesOfRun(run: Pick<RunRecord, 'runId' | 'seed' | 'settings'>): Names {
  const plain = plainSourceOf(run);
  return plain === undefined ? suiteNames(run.runId) : plainNames(plain);
}

/** `dep-…` or `vol-…`: the id of what the marketplace creates, whose digits are in the name too. */
function idempotencyKeyOf({ method, path, body }: Call): string | undefined {
  const kind = { '/instances': 'dep', '/volumes': 'vol' }[path];
  const name = stringField(isObject(body) ? body : undefined, 'name');
  return method === 'POST' && kind !== undefined && name !== undefined
    ? `${kind}-${name.slice(-ID_DIGITS)}`
    : undefined;
}

const PEOPLE = ['alex', 'amir', 'anna', 'chen', 'elena', 'ivan', 'julia', 'maria', 'omar', 'priya', 'yuki'];

/** A comment as `ssh-keygen` writes it, `user@host`; now and then none. */
function drawKeyComment(draws: Draws, key: string): string {
  const label = `key comment/${key}`;
  if (draws.fraction(label) < 0.08) return '';
  const person = PEOPLE[Math.floor(draws.fraction(`${label}/person`) * PEOPLE.length)];
  return `${person}@DESKTOP-${draws.hex(`${label}/host`, 7).toUpperCase()}`;
}
