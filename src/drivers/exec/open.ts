import { z } from 'zod';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  Call,
  MachineSpec,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { failed } from '../../platform-model/steps.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { Log } from '../../ports/log.ts';
import { orFailure, orUnknown } from '../kit/answers.ts';
import { type Channel, type Limits, problemOf } from './channel.ts';
import { AnswerLost, messageOf, NotSent, Unauthorized } from './errors.ts';
import {
  type Arguments,
  listed,
  listedItems,
  type Method,
  type Result,
  results,
} from './protocol/messages.ts';
import type { Capabilities, Info } from './protocol/objects.ts';
import {
  fromInventory,
  fromStep,
  fromWire,
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
  const { capabilities } = info;
  const client = new DriverClient(channel, log, capabilities);
  const toWire = (spec: MachineSpec) => ({
    ...toPlatform(spec, catalog.offers.get(spec.offerId), info.login_user),
    ...(capabilities.place && toHost(spec)),
  });
  const power = (method: 'stop' | 'start', ref: OwnerRef, cookie: string | null, call?: Call) =>
    step(async () => aboutThat(fromStep(await client.change(method, { ref, cookie }, call)), ref, method));
  return {
    manifest: toManifest(info, timeoutMs),
    get: (ref) => read(async () => aboutThat(fromWire(await client.ask('get', { ref })), ref, 'get')),
    list: () => read(async () => fromWire(await client.ask('list', {}))),
    ...(capabilities.place && {
      place: (spec: MachineSpec, avoidHosts: readonly string[]) =>
        read(() => client.ask('place', { spec: toWire(spec), avoid_hosts: [...avoidHosts] })),
    }),
    create: (spec, cookie, call) =>
      step(async () => {
        if (spec.cloudInit !== undefined && capabilities.cloud_init_bytes === 0) return cannot('cloud-init');
        const answer = await client.change('create', { ref: spec.ref, cookie, spec: toWire(spec) }, call);
        return aboutThat(fromStep(answer), spec.ref, 'create');
      }),
    stop: async (ref, cookie, call) =>
      capabilities.stop ? power('stop', ref, cookie, call) : cannot('stop'),
    start: async (ref, cookie, call) =>
      capabilities.resume ? power('start', ref, cookie, call) : cannot('resume'),
    restart: (ref, id, cookie, call) =>
      step(async () => {
        if (!capabilities.restart) return cannot('restart');
        const answer = await client.change('restart', { ref, restart_id: id, cookie }, call);
        return aboutThat(fromStep(answer), ref, 'restart');
      }),
    destroy: (ref, cookie, given, call) =>
      step(async () => fromStep(await client.change('destroy', { ref, cookie }, call, given))),
    ...(capabilities.disown && {
      disown: (ref: OwnerRef, cookie: string | null, call?: Call) =>
        step(async () => fromStep(await client.change('disown', { ref, cookie }, call))),
    }),
    ...(capabilities.writer_mark && {
      writer: {
        read: async (key: string) => (await client.ask('writer.read', { key })).texts,
        write: async (key: string, text: string) => void (await client.ask('writer.write', { key, text })),
      },
    }),
    ...(capabilities.attach_volume !== 'none' && { volumes: createVolumes(client, capabilities) }),
    ...(capabilities.inventory && {
      inventory: (avoidHosts: readonly string[] = []) =>
        read(async () => {
          const asked = { offers: toOffers(catalog), avoid_hosts: [...avoidHosts] };
          return fromInventory(await client.ask('inventory', asked), asked.offers);
        }),
    }),
    ...(capabilities.console && {
      consoleTail: async (ref: OwnerRef) =>
        (await client.ask('console', { ref })).text?.slice(0 - MAX_CONSOLE) ?? undefined,
    }),
    close: () => channel.close(),
  };
}

function createVolumes(client: DriverClient, capabilities: Capabilities): VolumeDriver {
  const toWire = (spec: VolumeSpec) => ({
    ...toPlatformVolume(spec),
    ...(capabilities.place_volume && toHost(spec)),
  });
  return {
    get: (ref) =>
      read(async () => aboutThat(fromWire(await client.ask('volumes.get', { ref })), ref, 'volumes.get')),
    list: () => read(async () => fromWire(await client.ask('volumes.list', {}))),
    ...(capabilities.place_volume && {
      place: (spec: VolumeSpec, avoidHosts: readonly string[]) =>
        read(() => client.ask('volumes.place', { spec: toWire(spec), avoid_hosts: [...avoidHosts] })),
    }),
    create: (spec, cookie, call) =>
      step(async () => {
        const { ref } = spec;
        const answer = await client.change('volumes.create', { ref, cookie, spec: toWire(spec) }, call);
        return aboutThat(fromStep(answer), ref, 'volumes.create');
      }),
    attach: (ref, machine, cookie, call) =>
      step(async () => fromStep(await client.change('volumes.attach', { ref, machine, cookie }, call))),
    detach: (ref, machine, cookie, call) =>
      step(async () => fromStep(await client.change('volumes.detach', { ref, machine, cookie }, call))),
    resize: (ref, sizeGb, cookie, call) =>
      step(async () => {
        if (capabilities.resize_volume === 'none') return cannot('resize_volume');
        const answer = await client.change('volumes.resize', { ref, size_gb: sizeGb, cookie }, call);
        return aboutThat(fromStep(answer), ref, 'volumes.resize');
      }),
    ...(capabilities.copy_volume && {
      copy: (ref: OwnerRef, spec: VolumeSpec, cookie: string | null, call?: Call) =>
        step(async () => {
          const answer = await client.change('volumes.copy', { ref, cookie, spec: toWire(spec) }, call);
          return aboutThat(fromStep(answer), spec.ref, 'volumes.copy');
        }),
    }),
    destroy: (ref, cookie, given, call) =>
      step(async () => fromStep(await client.change('volumes.destroy', { ref, cookie }, call, given))),
  };
}

/** @throws {AnswerLost} if the answer is about another machine or volume */
function aboutThat<Answer extends object>(answer: Answer, ref: OwnerRef, method: Method): Answer {
  const { value } = answer as { value?: { ref: OwnerRef } };
  if (value === undefined || value.ref === ref) return answer;
  throw new AnswerLost(`the driver answered ${method} of ${ref} with the other ref ${value.ref}`, 'invalid');
}

/** Answers a call for a capability that the driver does not have. Berth does not make such calls. */
function cannot(capability: string): Step<never> {
  return failed('unsupported', `the driver does not announce the capability ${capability}`);
}

const read = <Answer extends { answer: string }>(call: () => Promise<Answer>) => orUnknown(call, messageOf);
const step = <T>(call: () => Promise<Step<T>>) => orFailure(call, toFailure);

/**
 * Classifies an error. A request known not to have begun fails without a side effect. The core treats any other error
 * as unknown.
 */
function toFailure(error: unknown): Step<never> {
  if (error instanceof Unauthorized) return failed('auth', messageOf(error));
  if (error instanceof NotSent) return failed('transient', messageOf(error));
  throw error;
}

/** A listing of at least this many items is parsed in slices. */
const SLICED = 1_000;

/** Sends requests, and keeps only the answer fields that the protocol defines. */
class DriverClient {
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
