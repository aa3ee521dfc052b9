import { z } from 'zod';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  Call,
  MachineSpec,
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { Log } from '../../ports/log.ts';
import { type Channel, type Limits, problemOf } from './channel.ts';
import { AnswerLost, messageOf, NotSent, Unauthorized } from './errors.ts';
import {
  type Arguments,
  type Capabilities,
  type Grammar,
  grammarOf,
  type Info,
  listedItems,
  type Method,
  type Result,
} from './protocol/protocol.ts';
import {
  fromInventory,
  fromListing,
  fromPlatform,
  fromPlatformVolume,
  fromPresence,
  fromStep,
  toAvoid,
  toHost,
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

/** A listing of at least this many items is parsed in slices. */
const SLICED = 1_000;
/** Console output that the core keeps, in characters. */
const MAX_CONSOLE = 16 * 1024;

/**
 * The driver behind a channel. If an answer is lost, a read answers unknown and a step rejects: neither proves
 * anything.
 */
export function createPlatform(
  channel: Channel,
  { info, catalog, timeoutMs, log }: PlatformSetting,
): PlatformDriver {
  const caller = new Caller(channel, log, info.protocol);
  const { capabilities } = info;
  const toWire = (spec: MachineSpec) => ({
    ...toPlatform(spec, catalog.offers.get(spec.offerId), info.login_user),
    ...(capabilities.place && toHost(spec)),
  });
  const step = (method: 'stop' | 'start', ref: OwnerRef, cookie: string | null, call?: Call) =>
    order(async () => machineStep(await caller.change(method, { ref, cookie }, call), ref, method));
  return {
    manifest: toManifest(info, timeoutMs),
    get: (ref) =>
      look(async () =>
        fromPresence(await caller.ask('get', { ref }), (value) => machineOf(value, ref, 'get')),
      ),
    list: () => look(async () => fromListing(await caller.ask('list', {}), fromPlatform)),
    ...(capabilities.place && {
      place: (spec: MachineSpec, avoidHosts: readonly string[]) =>
        look(() => caller.ask('place', { spec: toWire(spec), ...toAvoid(avoidHosts) })),
    }),
    create: (spec, cookie, call) =>
      order(async () => {
        if (spec.cloudInit !== undefined && capabilities.cloud_init_bytes === 0) return cannot('cloud-init');
        const answer = await caller.change('create', { ref: spec.ref, cookie, spec: toWire(spec) }, call);
        return machineStep(answer, spec.ref, 'create');
      }),
    stop: async (ref, cookie, call) => (capabilities.stop ? step('stop', ref, cookie, call) : cannot('stop')),
    start: async (ref, cookie, call) =>
      capabilities.resume ? step('start', ref, cookie, call) : cannot('resume'),
    restart: (ref, id, cookie, call) =>
      order(async () => {
        if (!capabilities.restart) return cannot('restart');
        const answer = await caller.change('restart', { ref, restart_id: id, cookie }, call);
        return machineStep(answer, ref, 'restart');
      }),
    destroy: (ref, cookie, given, call) =>
      order(async () => fromStep(await caller.change('destroy', { ref, cookie }, call, given), same)),
    ...(capabilities.disown && {
      disown: (ref: OwnerRef, cookie: string | null, call?: Call) =>
        order(async () => fromStep(await caller.change('disown', { ref, cookie }, call), same)),
    }),
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
  const toWire = (spec: VolumeSpec) => ({
    ...toPlatformVolume(spec),
    ...(capabilities.place_volume && toHost(spec)),
  });
  return {
    get: (ref) =>
      look(async () => fromPresence(await caller.ask('volumes.get', { ref }), read(ref, 'volumes.get'))),
    list: () => look(async () => fromListing(await caller.ask('volumes.list', {}), fromPlatformVolume)),
    ...(capabilities.place_volume && {
      place: (spec: VolumeSpec, avoidHosts: readonly string[]) =>
        look(() => caller.ask('volumes.place', { spec: toWire(spec), ...toAvoid(avoidHosts) })),
    }),
    create: (spec, cookie, call) =>
      order(async () => {
        const { ref } = spec;
        const answer = await caller.change('volumes.create', { ref, cookie, spec: toWire(spec) }, call);
        return fromStep(answer, read(ref, 'volumes.create'));
      }),
    attach: (ref, machine, cookie, call) =>
      order(async () =>
        fromStep(await caller.change('volumes.attach', { ref, machine, cookie }, call), same),
      ),
    detach: (ref, machine, cookie, call) =>
      order(async () =>
        fromStep(await caller.change('volumes.detach', { ref, machine, cookie }, call), same),
      ),
    resize: (ref, sizeGb, cookie, call) =>
      order(async () => {
        if (capabilities.resize_volume === 'none') return cannot('resize_volume');
        const answer = await caller.change('volumes.resize', { ref, size_gb: sizeGb, cookie }, call);
        return fromStep(answer, read(ref, 'volumes.resize'));
      }),
    ...(capabilities.copy_volume && {
      copy: (ref: OwnerRef, spec: VolumeSpec, cookie: string | null, call?: Call) =>
        order(async () => {
          const answer = await caller.change('volumes.copy', { ref, cookie, spec: toWire(spec) }, call);
          return fromStep(answer, read(spec.ref, 'volumes.copy'));
        }),
    }),
    destroy: (ref, cookie, given, call) =>
      order(async () => fromStep(await caller.change('volumes.destroy', { ref, cookie }, call, given), same)),
  };
}

/** Sends requests, and keeps only the answer fields that the driver's protocol version defines. */
class Caller {
  readonly #channel: Channel;
  readonly #log: Log;
  readonly #grammar: Grammar;
  readonly #hasClaims: boolean;

  constructor(channel: Channel, log: Log, protocol: number) {
    this.#channel = channel;
    this.#log = log;
    this.#grammar = grammarOf(protocol);
    this.#hasClaims = protocol > 1;
  }

  /** Sends a request that changes something, with its claim and order if the version has these fields. */
  change<M extends Method>(
    method: M,
    args: Arguments<M>,
    call: Call | undefined,
    given?: DestroyOrder,
  ): Promise<Result<M>> {
    const claim = this.#hasClaims && call !== undefined && { fence: call.fence };
    const ordered = this.#hasClaims &&
      given && { order: { reason: given.reason, by: given.by, at: given.at } };
    return this.ask(method, { ...args, ...claim, ...ordered }, call);
  }

  /** @throws {AnswerLost | NotSent | Unauthorized} */
  async ask<M extends Method>(method: M, args: Arguments<M>, limits?: Limits): Promise<Result<M>> {
    const result = await parseResult(this.#grammar, method, await this.#channel.ask(method, args, limits));
    if (result.success) return this.#channel.secrets.cleanAnswer(result.data as Result<M>);
    const sentence = `the driver gave an invalid answer to ${method}: ${problemOf(result.error)}`;
    this.#log.warn({}, sentence);
    throw new AnswerLost(sentence, 'invalid');
  }
}

/** Parses an answer. Listed items are parsed in slices, since a long listing may take seconds. */
async function parseResult(
  { results, listed }: Grammar,
  method: Method,
  answer: unknown,
): Promise<z.ZodSafeParseResult<unknown>> {
  const schema = results[method];
  if (schema === undefined) throw new TypeError(`the driver's version of the protocol has no ${method}`);
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
  throw new AnswerLost(`the driver answered ${method} of ${ref} with the other ref ${value.ref}`, 'invalid');
}

/** Berth does not request a capability that the driver does not have. */
function cannot(capability: string): Step<never> {
  const detail = `the driver does not announce the capability ${capability}`;
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

/** A request known not to have begun fails without a side effect. The core treats any other error as unknown. */
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
