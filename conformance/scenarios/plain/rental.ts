import { instancePath } from '../../contract/paths.ts';
import { BudgetError } from '../../resources/budget.ts';
import { isConfirmedGone, isGone } from '../../resources/presence.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { answerOf, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { NOT_STOPPABLE } from '../instances/stop-start.ts';
import { marked } from '../machine/printed.ts';
import type { Instance, Session } from '../session.ts';
import type { Background } from './background.ts';
import { order } from './order.ts';
import { PACE, Pace } from './pace.ts';
import { Polls } from './polls.ts';

const MINUTE_MS = 60_000;
/** How long a machine is rented beyond the shortest time, how long until it is stopped, and how long it is then. */
const LONGER_MS = [0, 20 * MINUTE_MS] as const;
const UNTIL_STOP_MS = [4 * MINUTE_MS, 12 * MINUTE_MS] as const;
const STOPPED_MS = [MINUTE_MS, 6 * MINUTE_MS] as const;
/** How often a tenant is asked how much longer the machine may live. */
const ASKED_EVERY_MS = 5 * MINUTE_MS;

/** A user of the machine of a plain run who decides what is done with it. */
export interface Tenant {
  /** How long the machine is used, in milliseconds. */
  useMs: number;
  /** Whether it is stopped and started again while it is rented. */
  isPaused: boolean;
  /** How much longer the machine may live, in milliseconds; asked again every few minutes. */
  mayLiveMs(session: Session, instance: Instance): number;
  /** What the user does on the machine while it is ONLINE, until the signal is aborted. */
  visit(
    session: Session,
    online: { instance: Instance; shown: JsonObject },
    signal: AbortSignal,
  ): Promise<void>;
}

/** Rents one machine as a user of a marketplace does: creates it, uses it, perhaps stops and starts it, and ends it. */
export class Rental {
  readonly #session: Session;
  readonly #pace: Pace;
  readonly #background: Background;
  /** Default: a user who logs in, and uses it as long as most do. */
  readonly #tenant: Tenant | undefined;
  #ranMs = 0;
  #online: { instance: Instance; shown: JsonObject } | undefined;

  constructor(session: Session, pace: Pace, background: Background, tenant?: Tenant) {
    this.#session = session;
    this.#pace = pace;
    this.#background = background;
    this.#tenant = tenant;
  }

  async live(): Promise<void> {
    const instance = await this.#create();
    if (instance === undefined) return;
    const tenant = this.#tenant;
    const polls = new Polls(this.#session, instance, new Pace(this.#session.draws, 'polls'));
    const isAffordable = tenant === undefined || tenant.mayLiveMs(this.#session, instance) > 0;
    if (!isAffordable) this.#session.skip(['boot', 'online', 'stop', 'start'], 'its price passes the budget');
    const shown = isAffordable ? await this.#boot(polls) : undefined;
    if (shown !== undefined) {
      this.#online = { instance, shown };
      await this.#prove(polls, 'online/login-first', shown);
      const useMs = tenant?.useMs ?? PACE.minimumRuntimeMs + this.#pace.between(...LONGER_MS);
      if (tenant?.isPaused ?? true) await this.#pauseAndResume(polls, instance, shown);
      else await this.#use(polls, 'online/poll', useMs);
    }
    await this.#end(instance);
  }

  async #create(): Promise<Instance | undefined> {
    const ordered = await order(this.#session, this.#pace).catch(whyOverBudget);
    if (typeof ordered === 'string') {
      this.#session.skip(['create', 'boot', 'online', 'stop', 'start', 'destroy'], ordered);
      return undefined;
    }
    this.#session.primary = ordered;
    return ordered;
  }

  /** The read that showed it ONLINE. */
  async #boot(polls: Polls): Promise<JsonObject | undefined> {
    const isSettled = (status: string | undefined) => status !== undefined && status !== 'PROVISIONING';
    const last = await polls.follow('boot/poll', isSettled, {
      text: 'the instance to come ONLINE',
      onTheWay: ['PROVISIONING'],
      isUnderWay: true,
    });
    const shown = last && successOf(last);
    if (stringField(shown, 'status') === 'ONLINE') {
      this.#session.lastOnline = shown;
      return shown;
    }
    this.#session.skip(['online', 'stop', 'start'], `the instance did not come ONLINE: ${statusText(last)}`);
    return undefined;
  }

  /** Logs in, once more a poll later if that fails, and polls meanwhile. A marketplace polls at once after a login. */
  async #prove(polls: Polls, step: string, shown: JsonObject): Promise<void> {
    const session = this.#session;
    const login = async (): Promise<void> => {
      const { rung } = await session.login(step, shown, 'first');
      if (rung === 'done' || rung === 'execute') return;
      await session.sleep(PACE.pollMs[0]);
      await session.login(step, shown, 'first');
    };
    await this.#beside(polls, login(), step, true);
    polls.proved();
  }

  /** Polls while `work` is under way, such as a login that hangs. */
  async #beside(polls: Polls, work: Promise<unknown>, step: string, isUnderWay: boolean): Promise<void> {
    const text = 'a login';
    const polling = polls.follow(`${step}-meanwhile`, () => false, {
      text,
      isUnderWay,
      until: work,
    });
    await Promise.all([work, polling]);
  }

  async #pauseAndResume(polls: Polls, instance: Instance, shown: JsonObject): Promise<void> {
    const session = this.#session;
    if (!(await this.#use(polls, 'online/poll', this.#pace.between(...UNTIL_STOP_MS)))) return;
    const word = session.draws.hex('marker', 12);
    const write = async (): Promise<void> => {
      await session.login('observe/login', shown, 'first');
      const command = `echo ${word} > ${FILE} && sync`;
      await session.login('online/write-file', shown, 'first', { command });
    };
    await this.#beside(polls, write(), 'observe/login', false);
    if (await this.#stop(polls, instance)) {
      await Promise.all([
        session.login('stop/login', shown, 'first'),
        this.#follow(polls, 'stop/poll', ['STOPPED'], this.#pace.between(...STOPPED_MS)),
      ]);
      const again = await this.#start(polls, instance);
      if (again === undefined) return;
      this.#online = { instance, shown: again };
      const read = async (): Promise<void> => {
        await session.login('start/login', again, 'first');
        const command = marked(`cat ${FILE}`, this.#words());
        await session.login('start/read-file', again, 'first', { command });
      };
      await this.#beside(polls, read(), 'start/login', false);
    }
    const tenant = this.#tenant;
    const leftMs =
      Math.max((tenant?.useMs ?? PACE.minimumRuntimeMs) - this.#ranMs, 0) +
      (tenant === undefined ? this.#pace.between(...LONGER_MS) : 0);
    if (!(await this.#use(polls, 'start/use', leftMs))) return;
    const last = session.login('destroy/login-before', session.lastOnline ?? shown, 'first');
    await this.#beside(polls, last, 'destroy/login-before', false);
  }

  /** Polls the machine while it is used. False if it ended by itself, or if its tenant cannot pay for more. */
  async #use(polls: Polls, step: string, forMs: number): Promise<boolean> {
    const last = await this.#followAndVisit(polls, step, forMs);
    const tenant = this.#tenant;
    const isTooDear =
      tenant !== undefined &&
      this.#online !== undefined &&
      tenant.mayLiveMs(this.#session, this.#online.instance) <= 0;
    if (last === undefined && isTooDear) {
      this.#session.skip(['stop', 'start'], 'its price passes the budget');
      return false;
    }
    if (last === undefined) {
      this.#ranMs += forMs;
      return true;
    }
    this.#session.skip(['stop', 'start'], `the instance was rented, and ${statusText(last)}`);
    return false;
  }

  /** Polls while it is ONLINE and its tenant is on it. The tenant may end the use early. */
  async #followAndVisit(polls: Polls, step: string, forMs: number): Promise<Exchange | undefined> {
    const tenant = this.#tenant;
    const online = this.#online;
    if (tenant === undefined || online === undefined) return this.#follow(polls, step, ['ONLINE'], forMs);
    const session = this.#session;
    const ended = new AbortController();
    const visit = tenant.visit(session, online, AbortSignal.any([session.signal, ended.signal]));
    const endsAt = session.now() + forMs;
    const leftMs = (): number =>
      Math.min(endsAt - session.now(), tenant.mayLiveMs(session, online.instance), ASKED_EVERY_MS);
    try {
      for (let nextMs = leftMs(); nextMs >= 1; nextMs = leftMs()) {
        const last = await this.#follow(polls, step, ['ONLINE'], nextMs);
        if (last !== undefined) return last;
      }
      return undefined;
    } finally {
      ended.abort(new Error('the use of the machine is over'));
      await visit;
    }
  }

  /** Polls while the status is one of these. Returns the first read that shows another. */
  #follow(
    polls: Polls,
    step: string,
    statuses: readonly string[],
    forMs: number,
  ): Promise<Exchange | undefined> {
    const isOther = (status: string | undefined) => status !== undefined && !statuses.includes(status);
    const text = `${Math.round(forMs / MINUTE_MS)} minutes of its use`;
    return polls.follow(step, isOther, { text, isUnderWay: false, forMs });
  }

  /** False if it does not come to be STOPPED. */
  async #stop(polls: Polls, instance: Instance): Promise<boolean> {
    const session = this.#session;
    const asked = await session.post('stop/post', instancePath(instance, '/stop'));
    if (statusOf(asked) === 409) {
      this.#session.skip(['stop', 'start'], NOT_STOPPABLE.reason, NOT_STOPPABLE.capability);
      return false;
    }
    polls.soon(isSuccess(asked) ? PACE.awaitedMs : 0);
    const isOver = (status: string | undefined) =>
      status !== undefined && status !== 'STOPPING' && status !== 'ONLINE';
    const last = await polls.follow('stop/poll', isOver, {
      text: 'the instance to have stopped',
      onTheWay: ['STOPPING'],
      isUnderWay: true,
      isAwaited: true,
    });
    if (last === undefined || stringField(successOf(last), 'status') !== 'STOPPED') {
      this.#session.skip(['stop/login', 'start'], `the instance was asked to stop and ${statusText(last)}`);
      return false;
    }
    return true;
  }

  async #start(polls: Polls, instance: Instance): Promise<JsonObject | undefined> {
    const session = this.#session;
    const asked = await session.post('start/post', instancePath(instance, '/start'));
    if (!isSuccess(asked)) {
      const capability = statusOf(asked) === 409 ? 'resuming a stopped instance' : undefined;
      this.#session.skip(
        ['start/poll', 'start/login', 'start/read-file'],
        `the start of the stopped instance was answered ${answerOf(asked)}`,
        capability,
      );
      return undefined;
    }
    polls.soon(PACE.awaitedMs);
    const isOver = (status: string | undefined) =>
      status !== undefined && !['STOPPED', 'PROVISIONING'].includes(status);
    const last = await polls.follow('start/poll', isOver, {
      text: 'the instance to be ONLINE again',
      onTheWay: ['STOPPED', 'PROVISIONING'],
      isUnderWay: true,
      isAwaited: true,
    });
    const shown = last && successOf(last);
    if (stringField(shown, 'status') === 'ONLINE') {
      session.lastOnline = shown;
      return shown;
    }
    this.#session.skip(['start/login', 'start/read-file'], `the started instance ${statusText(last)}`);
    return undefined;
  }

  /** Repeats the DELETE until it is answered 404 or shows DESTROYED. A marketplace does not poll what it has ended. */
  async #end(instance: Instance): Promise<void> {
    const session = this.#session;
    const shown = session.lastOnline;
    const endsAt = session.now() + session.settings.readyTimeoutMs;
    let last = await session.delete('destroy/delete', instancePath(instance));
    for (let attempts = 0; !isGone(last) && session.now() < endsAt; attempts++) {
      session.waitsFor(`${instance.entry.name} to be gone`);
      await session.sleep(this.#pace.retryPauseMs(attempts));
      last = await session.delete('destroy/delete-again', instancePath(instance));
    }
    if (!isGone(last)) return;
    if (shown !== undefined) await session.login('destroy/login', shown, 'first');
    const list = await this.#background.nextList();
    if (isConfirmedGone(instance.id, last, list)) session.ledger.gone(instance.entry);
  }

  /** Words around the output of a command. */
  #words(): [string, string] {
    const word = (name: string) => this.#session.draws.hex(name, 10);
    return [word('begin'), word('end')];
  }
}

/** Over the cost cap none is created. */
function whyOverBudget(error: unknown): string {
  if (error instanceof BudgetError) return error.message;
  throw error;
}

const FILE = 'notes.txt';

function statusText(read: Exchange | undefined): string {
  if (read === undefined) return 'it did not change in time';
  const status = stringField(successOf(read), 'status');
  return status === undefined ? `it was answered ${answerOf(read)}` : `it is ${status}`;
}
