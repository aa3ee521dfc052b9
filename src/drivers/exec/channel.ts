import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { cleanText } from '../../orchestrator/model/platform-resource.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { Incompatible } from './errors.ts';
import {
  anyInfo,
  type Capabilities,
  grammarOf,
  type Info,
  type Method,
  PROTOCOL_VERSIONS,
} from './protocol/protocol.ts';
import type { Secrets } from './secrets.ts';

/** How long a request that changes something is waited for. */
export type Limits = Pick<Call, 'deadline' | 'signal'>;

/** How requests come to a driver and answers back: over pipes to a process, or over HTTP. */
export interface Channel {
  /**
   * Waits for the first answer to `info`.
   *
   * @throws {Error} with a sentence
   */
  open(): Promise<void>;
  /**
   * The result of one request, as it came. Nothing is sent after the deadline of `limits`, or once its signal is aborted.
   * At either of them the request is given up; with a program of version 2 the promise then settles when the program has
   * answered or has ended.
   *
   * @throws {NotSent | Unauthorized} if nothing was begun
   * @throws {AnswerLost} if that is not known
   */
  ask(method: Method, args: object, limits?: Limits): Promise<unknown>;
  /** What the driver was given, and none of its words may repeat. */
  readonly secrets: Secrets;
  /** Whether it holds requests back until the last one is answered, so that none waits in a pipe. */
  readonly isSerial: boolean;
  /** Rejects what is under way, and ends what was started. */
  close(): Promise<void>;
}

/** What both kinds of channel are given. */
export interface ChannelSetting {
  clock: Clock;
  log: Log;
  /** How long a request may take. */
  timeoutMs: number;
  startTimeoutMs: number;
  greeter: Greeter;
}

/** Larger than any listing: 100,000 machines are some 50 MB. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/** Holds the answers to `info` against what this Berth speaks, and against the first of them. */
export class Greeter {
  readonly #log: Log;
  #first: Info | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** What the driver said of itself. */
  get info(): Info {
    if (this.#first === undefined) throw new Error('the driver was not asked yet');
    return this.#first;
  }

  get arguments(): object {
    return { protocols: PROTOCOL_VERSIONS };
  }

  /** @throws {Incompatible} */
  greet(result: unknown): Info {
    const version = anyInfo.safeParse(result).data?.protocol;
    if (version !== undefined && !PROTOCOL_VERSIONS.includes(version))
      throw new Incompatible(versionProblem(version));
    const info = grammarOf(version ?? 1).info.safeParse(result);
    if (!info.success)
      throw new Incompatible(`the driver answers info with what is no answer: ${problemOf(info.error)}`);
    if (this.#first === undefined) this.#warnOfUnread(info.data, result as { capabilities: object });
    this.#first ??= info.data;
    const changed = changesOf(this.#first, info.data);
    if (changed.length > 0)
      throw new Incompatible(
        `the driver says otherwise than before what it can do (${changed.join(', ')}): restart Berth to go by that`,
      );
    return info.data;
  }

  /** What is misspelt counts as left out, and what is left out the driver cannot. */
  #warnOfUnread({ protocol }: Info, { capabilities }: { capabilities: object }): void {
    const known = grammarOf(protocol).capabilities;
    const names = Object.keys(capabilities).filter((name) => !known.includes(name));
    if (names.length > 0)
      this.#log.warn(
        {},
        `the driver names capabilities that this Berth does not know, and does not use: ${cleanText(names.join(', '))}`,
      );
  }
}

function versionProblem(version: number): string {
  const isNewer = version > Math.max(...PROTOCOL_VERSIONS);
  const remedy = isNewer
    ? 'upgrade Berth, or have the driver answer info with a version that it is offered'
    : 'upgrade the driver';
  const ours = `this Berth speaks ${PROTOCOL_VERSIONS.join(' and ')}`;
  return `the driver speaks version ${version} of the driver protocol, which is too ${isNewer ? 'new' : 'old'} (${ours}): ${remedy}`;
}

function changesOf(before: Info, now: Info): string[] {
  const names = Object.keys(before.capabilities) as (keyof Capabilities)[];
  return [
    ...(before.protocol === now.protocol ? [] : ['protocol']),
    ...names.filter((name) => before.capabilities[name] !== now.capabilities[name]),
  ];
}

/** The first finding of zod, with its place. */
export function problemOf({
  issues: [issue],
}: {
  issues: readonly { path: PropertyKey[]; message: string }[];
}): string {
  if (issue === undefined) return 'it is not as the protocol says';
  const place = issue.path.map(String).join('.');
  const message = issue.message.replace(
    /^Invalid input: (expected .*), received undefined$/,
    'it is missing, $1',
  );
  return `${place === '' ? 'the result' : place}: ${message}`;
}
