import { cleanText } from '../../orchestrator/model/platform-resource.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { Incompatible } from './errors.ts';
import {
  anyInfo,
  type Capabilities,
  capabilitiesSchema,
  type Info,
  type Method,
  PROTOCOL_VERSIONS,
  results,
} from './protocol.ts';
import type { Secrets } from './secrets.ts';

/** How requests come to a driver and answers back: over pipes to a process, or over HTTP. */
export interface Channel {
  /**
   * Waits for the first answer to `info`.
   *
   * @throws {Error} with a sentence
   */
  open(): Promise<void>;
  /**
   * The result of one request, as it came.
   *
   * @throws {NotSent | Unauthorized} if nothing was begun
   * @throws {AnswerLost} if that is not known
   */
  ask(method: Method, args: object): Promise<unknown>;
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
    const version = anyInfo.safeParse(result);
    if (version.success && !PROTOCOL_VERSIONS.includes(version.data.protocol))
      throw new Incompatible(versionProblem(version.data.protocol));
    const info = results.info.safeParse(result);
    if (!info.success)
      throw new Incompatible(`the driver answers info with what is no answer: ${problemOf(info.error)}`);
    if (this.#first === undefined) this.#warnOfUnread(result as { capabilities: object });
    this.#first ??= info.data;
    const changed = changesOf(this.#first.capabilities, info.data.capabilities);
    if (changed.length > 0)
      throw new Incompatible(
        `the driver says otherwise than before what it can do (${changed.join(', ')}): restart Berth to go by that`,
      );
    return info.data;
  }

  /** What is misspelt counts as left out, and what is left out the driver cannot. */
  #warnOfUnread({ capabilities }: { capabilities: object }): void {
    const names = Object.keys(capabilities).filter((name) => !(name in capabilitiesSchema.shape));
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

function changesOf(before: Capabilities, now: Capabilities): string[] {
  return (Object.keys(before) as (keyof Capabilities)[]).filter((name) => before[name] !== now[name]);
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
