import { suiteVersion } from '../contract/package.ts';
import type { RunRecord } from '../transcript/records.ts';
import type { Call } from './call.ts';

/** The names that a run gives its instances and volumes. */
export interface Names {
  /** The name of the n-th resource, from 1. Up to 999, no name of a run begins with another. */
  nameOf(n: number): string;
  /** Whether the run gave this name. The target may have appended to it, as O: allows for a name that is taken. */
  isOwn(name: string): boolean;
  /** Where to look for the run's resources, in words. */
  readonly pattern: string;
}

/** What `Identity.headers` knows about a request. */
export interface Outgoing {
  call: Call;
  step: string;
  requestId: string;
  authorization: string | undefined;
}

/** How a run presents itself to the target: headers, names and SSH keys. */
export interface Identity extends Names {
  /** The beginning of the header `User-Agent`; empty: none is sent. */
  readonly userAgent: string;
  /** Whether requests carry `X-Request-Id`. */
  readonly sendsRequestIds: boolean;
  /** The headers of a request, in the order of sending. */
  headers(outgoing: Outgoing): Record<string, string>;
  /** The comment of a public key; `key` is unique in the run. */
  keyComment(key: string): string;
}

/** The names of a usual run: `berth-conf-<run>-001`. */
export function suiteNames(runId: string): Names {
  const prefix = `berth-conf-${runId}-`;
  return {
    nameOf: (n) => `${prefix}${String(n).padStart(3, '0')}`,
    isOwn: (name) => name.startsWith(prefix),
    pattern: `names that begin with ${prefix}`,
  };
}

/** The identity of a usual run, which a provider finds in its logs. `task` is a word such as `run`. */
export function suiteIdentity(runId: string, task = 'run'): Identity {
  const userAgent = `berth-conformance/${suiteVersion} ${task}/${runId}`;
  return {
    ...suiteNames(runId),
    userAgent,
    sendsRequestIds: true,
    headers: ({ call, step, requestId, authorization }) => ({
      accept: 'application/json',
      'user-agent': `${userAgent} ${step}`,
      'x-request-id': requestId,
      ...(authorization !== undefined && { authorization }),
      ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
    }),
    keyComment: (key) => `berth-conformance-${runId}-${key}`,
  };
}

/** From what the names of a plain run are drawn. */
export interface PlainSource {
  seed: string;
  /** Eight hex digits, the same in all names of a marketplace. */
  installation: string;
}

/** The source of a plain run's names, by its first record; undefined for a usual run. */
export function plainSourceOf({
  seed,
  settings,
}: Pick<RunRecord, 'seed' | 'settings'>): PlainSource | undefined {
  const { plain, installation } = settings;
  return plain === true && seed !== undefined && installation !== undefined
    ? { seed, installation }
    : undefined;
}
