import type { Call } from '../http/call.ts';
import type { TargetClient } from '../http/target-client.ts';
import { idOf, numberField, parseJson } from '../text/json.ts';
import { isSuccess, listOf, successOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import { type Budget, BudgetError, formatUsd } from './budget.ts';
import type { Entry, Ledger, ResourceType } from './ledger.ts';
import { findByName } from './presence.ts';

/** A request to create a resource. All resources are created by `Resources`. */
export interface ResourceRequest {
  type: ResourceType;
  step: string;
  /** Builds the body from the ledger entry. A string is sent as it is. */
  body: (entry: Pick<Entry, 'n' | 'name'>) => unknown;
  region?: string;
  /** USD per hour. */
  pricePerHour?: number;
  /**
   * Set if the target must refuse the request: the longest lifetime of a resource that is created by mistake and
   * destroyed at once.
   */
  lifeMs?: number;
  credential?: Call['credential'];
  authorization?: string;
  contentType?: string;
  /** The name of another entry, to test duplicate names. */
  name?: string;
  /** The body describes nothing that can be created, so every answer except a success means that nothing was. */
  createsNothing?: true;
}

export interface CreateResult {
  entry: Entry;
  exchange: Exchange;
}

export interface ResourcesOptions {
  client: TargetClient;
  ledger: Ledger;
  budget: Budget;
  signal: AbortSignal;
  /**
   * Waits before each search for the result of an unclear create; `count` is its number, from 1. False: none is sent any
   * more. Default: one search at once.
   */
  beforeSearch?: (count: number) => Promise<boolean>;
}

/** The run stops buying after an instance that costs more than this many times the price of its offer. */
const LARGEST_JUMP = 1.5;

const PATHS: Readonly<Record<ResourceType, string>> = { instance: '/instances', volume: '/volumes' };

/**
 * Creates resources: writes the intent to the ledger, sends the request, and resolves an unclear answer by searching
 * the list.
 */
export class Resources {
  readonly #parts: ResourcesOptions;
  #others: ReadonlySet<string> | undefined;
  /** Why nothing more is bought: an instance cost more than its offer. */
  #jump: string | undefined;

  constructor(parts: ResourcesOptions) {
    this.#parts = parts;
  }

  /** The ids of the instances that were there before the run's first create. */
  get idsBefore(): ReadonlySet<string> {
    return this.#others ?? new Set();
  }

  /** Whether the cost cap allows further instances of these prices, in USD per hour. */
  affords(pricesPerHour: readonly (number | undefined)[]): boolean {
    try {
      this.#parts.budget.allow(pricesPerHour);
      return true;
    } catch (error) {
      if (error instanceof BudgetError) return false;
      throw error;
    }
  }

  /** Creates one resource. Throws `BudgetError` before anything is sent. */
  async create(request: ResourceRequest): Promise<CreateResult> {
    this.#parts.signal.throwIfAborted();
    await this.#readExistingIds();
    const entry = this.#intend(request);
    // A POST is never interrupted: it could leave an unknown resource.
    const exchange = await this.#parts.client.send(
      request.step,
      callOf(request, entry),
      undefined,
      this.#parts.signal,
    );
    await this.#settle(request, entry, exchange);
    return { entry, exchange };
  }

  /** Creates several resources at the same moment. Throws `BudgetError` before anything is sent. */
  async createTogether(requests: readonly ResourceRequest[]): Promise<CreateResult[]> {
    this.#parts.signal.throwIfAborted();
    await this.#readExistingIds();
    // All or none: an intent whose request is never sent would be searched for later.
    this.#parts.budget.allow(requests.map(priceOf));
    const entries = requests.map((request) => ({ request, entry: this.#intend(request) }));
    const exchanges = await this.#parts.client.sendTogether(
      entries.map(({ request, entry }) => ({ step: request.step, call: callOf(request, entry) })),
      this.#parts.signal,
    );
    const made: CreateResult[] = [];
    for (const [index, { request, entry }] of entries.entries()) {
      const exchange = exchanges[index];
      if (exchange === undefined) throw new Error('each request has an exchange');
      await this.#settle(request, entry, exchange);
      made.push({ entry, exchange });
    }
    return made;
  }

  /** Instances that existed before the run's first create are never its own, even if a create returns their id. */
  async #readExistingIds(): Promise<void> {
    const { client, signal } = this.#parts;
    if (this.#others !== undefined) return;
    this.knowBefore(await client.send('ledger/others', { method: 'GET', path: '/instances' }, signal));
  }

  /** Takes a list of all instances as that before the run's first create. */
  knowBefore(list: Exchange): void {
    this.#others = new Set((listOf(list) ?? []).flatMap((instance) => idOf(instance) ?? []));
  }

  #intend(request: ResourceRequest): Entry {
    const { type, step, region, pricePerHour, lifeMs, name } = request;
    if (this.#jump !== undefined && request.createsNothing !== true) throw new BudgetError(this.#jump);
    this.#parts.budget.allow([priceOf(request)], lifeMs);
    return this.#parts.ledger.intend({
      type,
      step,
      ...(region !== undefined && { region }),
      ...(pricePerHour !== undefined && { pricePerHour }),
      ...(name !== undefined && { name }),
    });
  }

  #noteJump({ type, pricePerHour: offered }: ResourceRequest, id: string, price: number | undefined): void {
    if (
      type !== 'instance' ||
      offered === undefined ||
      price === undefined ||
      price <= offered * LARGEST_JUMP
    )
      return;
    this.#jump = `${id} was offered for ${formatUsd(offered)} an hour and costs ${formatUsd(price)}: nothing more is bought`;
  }

  async #settle(request: ResourceRequest, entry: Entry, exchange: Exchange): Promise<void> {
    const { ledger, client } = this.#parts;
    const outcome = outcomeOf(exchange);
    if (outcome.kind === 'made' && entry.type === 'instance' && this.#others?.has(outcome.id)) {
      const why = `the create was answered with the id ${outcome.id} of an instance that was there before the run`;
      return ledger.unknown(entry, why);
    }
    if (outcome.kind === 'made') {
      this.#noteJump(request, outcome.id, priceShown(exchange));
      return ledger.made(entry, outcome.id, priceShown(exchange));
    }
    const madeNothing = (request.createsNothing === true || isUnreadable(exchange)) && !isSuccess(exchange);
    if (outcome.kind === 'refused' || madeNothing) return ledger.refused(entry);
    ledger.unknown(entry, outcome.why, exchange.answer !== undefined);
    if (entry.type !== 'instance') return;
    const { beforeSearch = async (count) => count === 1 } = this.#parts;
    for (let count = 1; entry.id === undefined && (await beforeSearch(count)); count++) {
      const found = await findByName(client, ledger, entry);
      if (found.kind === 'found') ledger.made(entry, found.id);
    }
  }
}

/** The price of an instance may be unknown; a volume, and a request that creates nothing, count as free. */
function priceOf({ type, pricePerHour, createsNothing }: ResourceRequest): number | undefined {
  return pricePerHour ?? (type === 'instance' && createsNothing !== true ? undefined : 0);
}

function callOf({ type, body, credential, authorization, contentType }: ResourceRequest, entry: Entry): Call {
  return {
    method: 'POST',
    path: PATHS[type],
    body: body(entry),
    ...(credential !== undefined && { credential }),
    ...(authorization !== undefined && { authorization }),
    ...(contentType !== undefined && { contentType }),
  };
}

/** Whether the body is unreadable: no resource with the run's name can result from it. */
function isUnreadable({ request }: Exchange): boolean {
  return parseJson(request.body) === undefined;
}

/** The price in the answer to a create. */
function priceShown(exchange: Exchange): number | undefined {
  const price = numberField(successOf(exchange), 'price_per_hour');
  return price !== undefined && price >= 0 ? price : undefined;
}

type Outcome = { kind: 'made'; id: string } | { kind: 'refused' } | { kind: 'unknown'; why: string };

/** Interprets the answer to a create. Only an unambiguous refusal counts as `refused`. */
function outcomeOf(exchange: Exchange): Outcome {
  const { answer, failure } = exchange;
  if (failure !== undefined) {
    const neverLeft = ['dns', 'connect', 'tls'].includes(failure.kind);
    return neverLeft ? { kind: 'refused' } : { kind: 'unknown', why: `no answer came: ${failure.message}` };
  }
  const id = idOf(successOf(exchange));
  if (id !== undefined) return { kind: 'made', id };
  const status = answer?.status ?? 0;
  if (isSuccess(exchange)) return { kind: 'unknown', why: `the answer was ${status} without an id` };
  if (status >= 400 && status < 500 && status !== 408) return { kind: 'refused' };
  return { kind: 'unknown', why: `the answer was ${status}` };
}
