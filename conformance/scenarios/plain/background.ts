import { type JsonObject, objectsField } from '../../text/json.ts';
import { isSuccess, jsonOf, listOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Session } from '../session.ts';
import { PACE, Pace } from './pace.ts';
import { exchangeRefusedKey } from './sign-in.ts';

/** A list that can not be read is waited for until this many in a row could not. */
const MOST_UNREAD = 3;

/** What a marketplace does at all times: reads the catalogue every half minute, and the account's list every two. */
export class Background {
  readonly #session: Session;
  readonly #catalogPace: Pace;
  readonly #sweepPace: Pace;
  readonly #ended = new AbortController();
  readonly #signal: AbortSignal;
  #waiting: ((list: Exchange) => void)[] = [];
  #rounds = 0;
  /** The number of lists in a row that could not be read. */
  #unread = 0;
  /** The step name of the next list. */
  #sweepStep = 'list/all';

  constructor(session: Session) {
    this.#session = session;
    this.#catalogPace = new Pace(session.draws, 'catalog');
    this.#sweepPace = new Pace(session.draws, 'sweep');
    this.#signal = AbortSignal.any([session.signal, this.#ended.signal]);
  }

  /** The number of times that the catalogue was read. */
  get catalogRounds(): number {
    return this.#rounds;
  }

  /** Runs until `work` is settled. */
  during(work: () => Promise<void>): Promise<void> {
    const working = work().finally(() => this.#ended.abort());
    return together(this.#session, [working, this.#readCatalog(), this.#sweep()]);
  }

  /** The next list of all instances; `step` names it. */
  async nextList(step = 'list/all'): Promise<Exchange> {
    this.#signal.throwIfAborted();
    this.#sweepStep = step;
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      this.#signal.addEventListener('abort', () => reject(this.#signal.reason), { once: true });
    });
  }

  async #readCatalog(): Promise<void> {
    const session = this.#session;
    // A target that takes access tokens only refuses the key of the first reads.
    for (let scenario = 'token/static-key'; ; scenario = 'catalog') {
      const [configurations, availability] = await Promise.all(
        (['configurations', 'availability'] as const).map((list) =>
          session.get(`${scenario}/${list}`, `/${list}`),
        ),
      );
      this.#rounds++;
      if (configurations !== undefined && (await exchangeRefusedKey(session, configurations))) {
        await session.get('token/use', '/configurations');
        continue;
      }
      session.configurations = offersIn(configurations) ?? session.configurations;
      session.availability = offersIn(availability) ?? session.availability;
      if (!(await this.#sleep(this.#catalogPace.catalogPauseMs()))) return;
    }
  }

  async #sweep(): Promise<void> {
    for (let pauseMs = this.#sweepPace.firstSweepMs(); await this.#sleep(pauseMs); pauseMs = PACE.sweepMs) {
      const list = await this.#session.get(this.#sweepStep, '/instances');
      if (this.#ended.signal.aborted) return;
      this.#unread = listOf(list) === undefined ? this.#unread + 1 : 0;
      if (this.#unread % MOST_UNREAD !== 0) continue;
      this.#sweepStep = 'list/all';
      for (const resolve of this.#waiting.splice(0)) resolve(list);
    }
  }

  /** False once the background has ended. */
  async #sleep(ms: number): Promise<boolean> {
    try {
      await this.#session.sleep(ms, this.#signal);
      return true;
    } catch (error) {
      if (this.#ended.signal.aborted) return false;
      throw error;
    }
  }
}

/** Settles once all of the work has. A failure ends the rest, and is thrown then. */
async function together(session: Session, work: readonly Promise<void>[]): Promise<void> {
  const failures: unknown[] = [];
  const fail = (error: unknown): void => {
    failures.push(error);
    session.giveUp(error);
  };
  await Promise.all(work.map((each) => each.catch(fail)));
  if (failures.length > 0) throw failures[0];
}

/** Undefined if the answer is not a success. */
function offersIn(read: Exchange | undefined): JsonObject[] | undefined {
  return read !== undefined && isSuccess(read) ? objectsField(jsonOf(read), 'configurations') : undefined;
}
