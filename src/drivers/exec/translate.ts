import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import { renderCloudInit } from '../../orchestrator/cloud-init/render.ts';
import type { Inventory } from '../../orchestrator/model/inventory.ts';
import type {
  DriverManifest,
  MachineSpec,
  Step,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { pending } from '../../platform-model/steps.ts';
import type { Result } from './protocol/messages.ts';
import type { Info, WireMachineSpec, WireOffer, WireVolumeSpec } from './protocol/objects.ts';

/**
 * The manifest for the core. A create that was sent may begin until its deadline, so the machine may become visible
 * later than the driver says by that time.
 */
export function toManifest({ name, capabilities }: Info, timeoutMs: number): DriverManifest {
  return {
    name,
    stop: capabilities.stop,
    resume: capabilities.resume,
    restart: capabilities.restart,
    attachVolume: capabilities.attach_volume,
    resizeVolume: capabilities.resize_volume,
    createVisibleWithinMs: capabilities.create_visible_within_ms + timeoutMs,
    keepsNotes: capabilities.keeps_notes,
    cloudInitBytes: capabilities.cloud_init_bytes,
    fences: capabilities.fences,
    marksWriter: capabilities.writer_mark,
  };
}

export function toPlatform(spec: MachineSpec, offer: Offer | undefined, loginUser: string): WireMachineSpec {
  const { vendorData, userData } = renderCloudInit(spec, { loginUser });
  return {
    ref: spec.ref,
    offer_id: spec.offerId,
    machine: toJson(offer),
    datacenter: spec.datacenter,
    hostname: spec.hostname,
    image: spec.image,
    vcpus: spec.vcpus,
    memory_gb: spec.memoryGb,
    root_disk_gb: spec.rootDiskGb,
    gpu_count: spec.gpuCount,
    gpu_type: spec.gpuType ?? null,
    ssh_keys: [...spec.sshKeys],
    cloud_init: spec.cloudInit ?? null,
    vendor_data: vendorData,
    user_data: userData,
    note: spec.note,
    avoid_hosts: [...(spec.avoidHosts ?? [])],
  };
}

export function toHost({ host }: { host?: string }): { host?: string } {
  return host === undefined ? {} : { host };
}

export function toPlatformVolume({ ref, datacenter, sizeGb, type, note }: VolumeSpec): WireVolumeSpec {
  return { ref, datacenter, size_gb: sizeGb, type: type ?? null, note };
}

export function toOffers({ offers, regions }: Catalog): WireOffer[] {
  return [...offers.values()].map((offer) => ({
    offer_id: offer.id,
    datacenters: offer.placements.map(({ region }) => regions.get(region)?.datacenter ?? region),
    vcpus: offer.vcpus,
    memory_gb: offer.memoryGb,
    root_disk_gb: offer.storageGb,
    gpu_count: offer.gpuCount ?? 0,
    gpu_type: offer.gpuType ?? null,
    machine: toJson(offer),
  }));
}

const toJson = (offer: Offer | undefined): WireOffer['machine'] =>
  (offer?.machine ?? {}) as WireOffer['machine'];

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
type FromWire<T> = T extends readonly (infer Item)[]
  ? FromWire<Item>[]
  : T extends object
    ? { [Key in keyof T as Camel<Key & string>]: Key extends 'port_forwards' ? T[Key] : FromWire<T[Key]> }
    : T;

/** A parsed answer in the core's words: the protocol has the same fields, in snake case. Port forwards are as in the API. */
export function fromWire<T>(answer: T): FromWire<T> {
  if (typeof answer !== 'object' || answer === null) return answer as FromWire<T>;
  if (Array.isArray(answer)) return answer.map(fromWire) as FromWire<T>;
  const converted: Record<string, unknown> = {};
  for (const name of Object.keys(answer)) {
    const value: unknown = answer[name as keyof typeof answer];
    const isLeaf = name === 'port_forwards' || typeof value !== 'object';
    converted[toCamel(name)] = isLeaf ? value : fromWire(value);
  }
  return converted as FromWire<T>;
}

/** The names of the protocol's fields, each converted once: a listing repeats them for each machine. */
const camelNames = new Map<string, string>();

function toCamel(name: string): string {
  const known = camelNames.get(name);
  if (known !== undefined) return known;
  const camel = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  camelNames.set(name, camel);
  return camel;
}

type Unfinished = Exclude<Result<'destroy'>, { outcome: 'done' }>;

export function fromStep<T>(step: { outcome: 'done'; value: T } | Unfinished): Step<FromWire<T>> {
  if (step.outcome !== 'pending') return fromWire(step) as Step<FromWire<T>>;
  const { cookie, poll_after_ms, progress } = step;
  return pending(cookie, poll_after_ms, progress?.phase, progress?.deadline_at);
}

export function fromInventory(
  inventory: Result<'inventory'>,
  offers: readonly Pick<WireOffer, 'offer_id' | 'datacenters'>[],
): Inventory {
  if (inventory.answer === 'unknown') return inventory;
  const { free: units, ...counted } = inventory;
  if (typeof units !== 'number') return fromWire({ ...counted, free: units });
  const places = offers.flatMap(({ offer_id: offerId, datacenters }) =>
    datacenters.map((datacenter) => ({ offerId, datacenter, units })),
  );
  return { ...fromWire(counted), free: places };
}
