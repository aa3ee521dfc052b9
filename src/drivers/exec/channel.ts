import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { cleanText } from '../../orchestrator/model/platform-resource.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { Incompatible } from './errors.ts';
import type { Method } from './protocol/messages.ts';
import { type Capabilities, type Info, info as infoSchema } from './protocol/objects.ts';
import type { Secrets } from './secrets.ts';

/** Limits of a request that changes something. */
export type Limits = Pick<Call, 'deadline' | 'signal'>;

/** Carries requests to a driver and its answers back: over pipes to a process, or over HTTP. */
export interface Channel {
  /**
   * Waits for the first answer to `info`.
   *
   * @throws {Error} with a message
   */
  open(): Promise<void>;
  /**
   * Sends a request and returns its result unparsed. A request that is past its deadline or aborted is not sent; one
   * under way is given up. With a program that reads `cancel`, the promise then settles when the program has answered
   * or ended.
   *
   * @throws {NotSent | Unauthorized} if the driver has begun nothing
   * @throws {AnswerLost} if that is unknown
   */
  ask(method: Method, args: object, limits?: Limits): Promise<unknown>;
  /** Secrets that were passed to the driver; they are removed from its texts. */
  readonly secrets: Secrets;
  /** Whether a request is held back until the previous one is answered, so that none waits in a pipe. */
  readonly isSerial: boolean;
  /** Rejects the requests under way and ends the driver's process. */
  close(): Promise<void>;
}

export interface ChannelSetting {
  clock: Clock;
  log: Log;
  /** Time limit of a request. */
  timeoutMs: number;
  startTimeoutMs: number;
  greeter: Greeter;
}

/** Larger than any listing: 100,000 machines take about 50 MB. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/** Checks each answer to `info`, also against the first one. */
export class Greeter {
  readonly #log: Log;
  #first: Info | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** The driver's first answer to `info`. */
  get info(): Info {
    if (this.#first === undefined) throw new Error('the driver was not asked yet');
    return this.#first;
  }

  /** @throws {Incompatible} */
  greet(result: unknown): Info {
    const info = infoSchema.safeParse(result);
    if (!info.success)
      throw new Incompatible(`the driver gave an invalid answer to info: ${problemOf(info.error)}`);
    if (this.#first === undefined) this.#warnOfUnread(result as { capabilities: object });
    this.#first ??= info.data;
    const changed = changesOf(this.#first, info.data);
    if (changed.length > 0)
      throw new Incompatible(
        `the driver changed its capabilities (${changed.join(', ')}): restart Berth to use the new ones`,
      );
    return info.data;
  }

  /** Warns of unknown capability names. A misspelt capability counts as absent. */
  #warnOfUnread({ capabilities }: { capabilities: object }): void {
    const known = Object.keys(infoSchema.shape.capabilities.shape);
    const names = Object.keys(capabilities).filter((name) => !known.includes(name));
    if (names.length > 0)
      this.#log.warn(
        {},
        `the driver announces capabilities that this version of Berth ignores: ${cleanText(names.join(', '))}`,
      );
  }
}

function changesOf(before: Info, now: Info): string[] {
  const names = Object.keys(before.capabilities) as (keyof Capabilities)[];
  return names.filter((name) => before.capabilities[name] !== now.capabilities[name]);
}

/** Zod's first issue, with its path. */
export function problemOf({
  issues: [issue],
}: {
  issues: readonly { path: PropertyKey[]; message: string }[];
}): string {
  if (issue === undefined) return 'it does not match the protocol';
  const place = issue.path.map(String).join('.');
  const message = issue.message.replace(
    /^Invalid input: (expected .*), received undefined$/,
    'it is missing, $1',
  );
  return `${place === '' ? 'the result' : place}: ${message}`;
}
