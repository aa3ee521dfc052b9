import { z } from 'zod';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { Log } from '../../ports/log.ts';
import { type Channel, type Limits, problemOf } from './channel.ts';
import { AnswerLost } from './errors.ts';
import {
  type Arguments,
  listed,
  listedItems,
  type Method,
  type Result,
  results,
} from './protocol/messages.ts';
import type { Capabilities } from './protocol/objects.ts';

/** A listing of at least this many items is parsed in slices. */
const SLICED = 1_000;

/** Sends requests, and keeps only the answer fields that the protocol defines. */
export class DriverClient {
  readonly #channel: Channel;
  readonly #log: Log;
  readonly #capabilities: Pick<Capabilities, 'fences' | 'orders'>;

  constructor(channel: Channel, log: Log, capabilities: Pick<Capabilities, 'fences' | 'orders'>) {
    this.#channel = channel;
    this.#log = log;
    this.#capabilities = capabilities;
  }

  /** Sends a request that changes something, with its claim and order if the driver reads them. */
  change<M extends Method>(
    method: M,
    args: Arguments<M>,
    call: Call | undefined,
    given?: DestroyOrder,
  ): Promise<Result<M>> {
    const { fences, orders } = this.#capabilities;
    const claim = fences && call !== undefined && { fence: call.fence };
    const ordered = orders && given && { order: { reason: given.reason, by: given.by, at: given.at } };
    return this.ask(method, { ...args, ...claim, ...ordered }, call);
  }

  /** @throws {AnswerLost | NotSent | Unauthorized} */
  async ask<M extends Method>(method: M, args: Arguments<M>, limits?: Limits): Promise<Result<M>> {
    const result = await parseResult(method, await this.#channel.ask(method, args, limits));
    if (result.success) return this.#channel.secrets.cleanAnswer(result.data as Result<M>);
    const sentence = `the driver gave an invalid answer to ${method}: ${problemOf(result.error)}`;
    this.#log.warn({}, sentence);
    throw new AnswerLost(sentence, 'invalid');
  }
}

/** Parses an answer. Listed items are parsed in slices, since a long listing may take seconds. */
async function parseResult(method: Method, answer: unknown): Promise<z.ZodSafeParseResult<unknown>> {
  const schema = results[method];
  if (method !== 'list' && method !== 'volumes.list') return schema.safeParse(answer);
  const { success, error, data } = listedItems.safeParse(answer);
  if (!success && error.issues.some(({ code }) => code === 'too_big')) return { success, error };
  if (!success || data.items.length < SLICED) return schema.safeParse(answer);
  const whole = schema.safeParse(Object.assign({}, answer, { items: [] }));
  if (!whole.success) return whole;
  const items: unknown[] = [];
  for await (const slice of inSlices(data.items))
    for (const item of slice) {
      const parsed = listed[method].safeParse(item);
      if (!parsed.success) return { success: false, error: at(['items', items.length], parsed.error) };
      items.push(parsed.data);
    }
  return { success: true, data: { ...(whole.data as object), items } };
}

function at(place: PropertyKey[], { issues }: z.ZodError): z.ZodError {
  return new z.ZodError(issues.map((issue) => ({ ...issue, path: [...place, ...issue.path] })));
}
