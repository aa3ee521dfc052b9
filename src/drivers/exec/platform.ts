import { z } from 'zod';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type {
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../orchestrator/model/platform-driver.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { Log } from '../../ports/log.ts';
import { type Channel, problemOf } from './channel.ts';
import { AnswerLost, messageOf, NotSent, Unauthorized } from './errors.ts';
import {
  type Arguments,
  type Capabilities,
  type Info,
  listed,
  listedItems,
  type Method,
  type Result,
  results,
} from './protocol.ts';
import {
  fromInventory,
  fromListing,
  fromPlatform,
  fromPlatformVolume,
  fromPresence,
  fromStep,
  toAvoid,
  toManifest,
  toOffers,
  toPlatform,
  toPlatformVolume,
} from './translate.ts';

export interface PlatformSetting {
  info: Info;
  catalog: Catalog;
  timeoutMs: number;
  log: Log;
}

/** A listing of this many items is parsed in slices. */
const SLICED = 1_000;
/** How much of a console the core wants. */
const MAX_CONSOLE = 16 * 1024;

/** The driver behind a channel. A look whose answer is lost is unknown, an order rejects: neither proves anything. */
export function createPlatform(
  channel: Channel,
  { info, catalog, timeoutMs, log }: PlatformSetting,
): PlatformDriver {
  const caller = new Caller(channel, log);
  const { capabilities } = info;
  const step = (method: 'stop' | 'start', ref: OwnerRef, cookie: string | null) =>
    order(async () => machineStep(await caller.ask(method, { ref, cookie }), ref, method));
  return {
    manifest: toManifest(info, timeoutMs),
    get: (ref) =>
      look(async () =>
        fromPresence(await caller.ask('get', { ref }), (value) => machineOf(value, ref, 'get')),
      ),
    list: () => look(async () => fromListing(await caller.ask('list', {}), fromPlatform)),
    create: (spec, cookie) =>
      order(async () => {
        if (spec.cloudInit !== undefined && capabilities.cloud_init_bytes === 0) return cannot('cloud-init');
        const wire = toPlatform(spec, catalog.offers.get(spec.offerId), info.login_user);
        const answer = await caller.ask('create', { ref: spec.ref, cookie, spec: wire });
        return machineStep(answer, spec.ref, 'create');
      }),
    stop: async (ref, cookie) => (capabilities.stop ? step('stop', ref, cookie) : cannot('stop')),
    start: async (ref, cookie) => (capabilities.resume ? step('start', ref, cookie) : cannot('resume')),
    restart: (ref, id, cookie) =>
      order(async () => {
        if (!capabilities.restart) return cannot('restart');
        return machineStep(await caller.ask('restart', { ref, restart_id: id, cookie }), ref, 'restart');
      }),
    destroy: (ref, cookie) => order(async () => fromStep(await caller.ask('destroy', { ref, cookie }), same)),
    ...(capabilities.attach_volume !== 'none' && { volumes: createVolumes(caller, capabilities) }),
    ...(capabilities.inventory && {
      inventory: (avoidHosts?: readonly string[]) =>
        look(async () => {
          const offers = toOffers(catalog);
          return fromInventory(await caller.ask('inventory', { offers, ...toAvoid(avoidHosts) }), offers);
        }),
    }),
    ...(capabilities.console && {
      consoleTail: async (ref: OwnerRef) =>
        (await caller.ask('console', { ref })).text?.slice(0 - MAX_CONSOLE) ?? undefined,
    }),
    close: () => channel.close(),
  };
}

function createVolumes(caller: Caller, capabilities: Capabilities): VolumeDriver {
  const read = (ref: OwnerRef, method: Method) => (value: Parameters<typeof fromPlatformVolume>[0]) =>
    aboutThat(fromPlatformVolume(value), ref, method);
  return {
    get: (ref) =>
      look(async () => fromPresence(await caller.ask('volumes.get', { ref }), read(ref, 'volumes.get'))),
    list: () => look(async () => fromListing(await caller.ask('volumes.list', {}), fromPlatformVolume)),
    create: (spec, cookie) =>
      order(async () => {
        const { ref } = spec;
        const answer = await caller.ask('volumes.create', { ref, cookie, spec: toPlatformVolume(spec) });
        return fromStep(answer, read(ref, 'volumes.create'));
      }),
    attach: (ref, machine, cookie) =>
      order(async () => fromStep(await caller.ask('volumes.attach', { ref, machine, cookie }), same)),
    detach: (ref, machine, cookie) =>
      order(async () => fromStep(await caller.ask('volumes.detach', { ref, machine, cookie }), same)),
    resize: (ref, sizeGb, cookie) =>
      order(async () => {
        if (capabilities.resize_volume === 'none') return cannot('resize_volume');
        const answer = await caller.ask('volumes.resize', { ref, size_gb: sizeGb, cookie });
        return fromStep(answer, read(ref, 'volumes.resize'));
      }),
    destroy: (ref, cookie) =>
      order(async () => fromStep(await caller.ask('volumes.destroy', { ref, cookie }), same)),
  };
}

/** Asks, and believes of an answer only what the protocol names. */
class Caller {
  readonly #channel: Channel;
  readonly #log: Log;

  constructor(channel: Channel, log: Log) {
    this.#channel = channel;
    this.#log = log;
  }

  /** @throws {AnswerLost | NotSent | Unauthorized} */
  async ask<M extends Method>(method: M, args: Arguments<M>): Promise<Result<M>> {
    const result = await parseResult(method, await this.#channel.ask(method, args));
    if (result.success) return this.#channel.secrets.cleanAnswer(result.data as Result<M>);
    const sentence = `the driver answers ${method} with what is no answer of the protocol: ${problemOf(result.error)}`;
    this.#log.warn({}, sentence);
    throw new AnswerLost(sentence, 'invalid');
  }
}

/** As `results` says. What is listed is parsed in slices, as all of it at once may take seconds. */
async function parseResult(method: Method, answer: unknown): Promise<z.ZodSafeParseResult<unknown>> {
  if (method !== 'list' && method !== 'volumes.list') return results[method].safeParse(answer);
  const { success, error, data } = listedItems.safeParse(answer);
  if (!success && error.issues.some(({ code }) => code === 'too_big')) return { success, error };
  if (!success || data.items.length < SLICED) return results[method].safeParse(answer);
  const whole = results[method].safeParse(Object.assign({}, answer, { items: [] }));
  if (!whole.success) return whole;
  const items: unknown[] = [];
  for await (const slice of inSlices(data.items))
    for (const item of slice) {
      const parsed = listed[method].safeParse(item);
      if (!parsed.success) return { success: false, error: at(['items', items.length], parsed.error) };
      items.push(parsed.data);
    }
  return { success: true, data: { ...whole.data, items } };
}

function at(place: PropertyKey[], { issues }: z.ZodError): z.ZodError {
  return new z.ZodError(issues.map((issue) => ({ ...issue, path: [...place, ...issue.path] })));
}

type WireMachine = Parameters<typeof fromPlatform>[0];

function machineStep(answer: Result<'create'>, ref: OwnerRef, method: Method): Step<ObservedMachine> {
  return fromStep(answer, (value) => machineOf(value, ref, method));
}

function machineOf(value: WireMachine, ref: OwnerRef, method: Method): ObservedMachine {
  return aboutThat(fromPlatform(value), ref, method);
}

/** @throws {AnswerLost} if the answer is about another machine or volume */
function aboutThat<T extends ObservedMachine | ObservedVolume>(value: T, ref: OwnerRef, method: Method): T {
  if (value.ref === ref) return value;
  throw new AnswerLost(`the driver answers ${method} of ${ref} with ${value.ref}`, 'invalid');
}

/** What the driver says that it cannot is not asked of it. */
function cannot(capability: string): Step<never> {
  const detail = `the driver says that it has no ${capability}`;
  return { outcome: 'failed', code: 'unsupported', sideEffect: 'none', detail };
}

const same = (value: null): null => value;

async function look<Answer extends { answer: string }>(
  call: () => Promise<Answer>,
): Promise<Answer | { answer: 'unknown'; reason: string }> {
  try {
    return await call();
  } catch (error) {
    return { answer: 'unknown', reason: messageOf(error) };
  }
}

/** What is known not to have been begun fails without a side effect; any other error is the core's to doubt. */
async function order<T>(call: () => Promise<Step<T>>): Promise<Step<T>> {
  try {
    return await call();
  } catch (error) {
    const code = error instanceof Unauthorized ? 'auth' : 'transient';
    if (error instanceof Unauthorized || error instanceof NotSent)
      return { outcome: 'failed', code, sideEffect: 'none', detail: messageOf(error) };
    throw error;
  }
}
