import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import { renderCloudInit } from '../../orchestrator/cloud-init/render.ts';
import type { Inventory } from '../../orchestrator/model/inventory.ts';
import type {
  AskedHosts,
  DriverManifest,
  Listing,
  MachineSpec,
  ObservedMachine,
  ObservedVolume,
  Presence,
  Step,
  VolumeSpec,
} from '../../orchestrator/model/platform-driver.ts';
import { pending } from '../../platform-model/steps.ts';
import type { Result } from './protocol/messages.ts';
import type {
  Info,
  WireMachine,
  WireMachineSpec,
  WireOffer,
  WireVolume,
  WireVolumeSpec,
} from './protocol/objects.ts';

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

export function fromPlatform({ created_at, endpoint, renamed_to, ...machine }: WireMachine): ObservedMachine {
  return {
    ...machine,
    createdAt: created_at,
    ...(renamed_to !== undefined && { renamedTo: renamed_to }),
    ...(endpoint !== undefined && { endpoint: fromEndpoint(endpoint) }),
  };
}

function fromEndpoint({
  public_ip,
  private_ip,
  ssh_port,
  ssh_username,
  port_forwards,
  host_key_fingerprint,
}: NonNullable<WireMachine['endpoint']>): NonNullable<ObservedMachine['endpoint']> {
  return {
    publicIp: public_ip,
    sshPort: ssh_port,
    sshUsername: ssh_username,
    ...(private_ip !== undefined && { privateIp: private_ip }),
    ...(port_forwards !== undefined && { portForwards: port_forwards }),
    ...(host_key_fingerprint !== undefined && { hostKeyFingerprint: host_key_fingerprint }),
  };
}

export function fromPlatformVolume({
  attached_to,
  created_at,
  size_gb,
  renamed_to,
  ...volume
}: WireVolume): ObservedVolume {
  return {
    ...volume,
    attachedTo: attached_to,
    createdAt: created_at,
    ...(size_gb !== undefined && { sizeGb: size_gb }),
    ...(renamed_to !== undefined && { renamedTo: renamed_to }),
  };
}

type WirePresence<W> =
  | { answer: 'observed'; value: W }
  | { answer: 'gone'; hosts?: AskedHosts }
  | { answer: 'unknown'; reason: string; hosts?: AskedHosts };

export function fromPresence<W, T>(presence: WirePresence<W>, read: (value: W) => T): Presence<T> {
  return presence.answer === 'observed' ? { answer: 'observed', value: read(presence.value) } : presence;
}

export function fromListing<W, T>(listing: Listing<W>, read: (item: W) => T): Listing<T> {
  return listing.answer === 'listed' ? { ...listing, items: listing.items.map(read) } : listing;
}

type WireFailure = Extract<Result<'destroy'>, { outcome: 'failed' }>;
type WireStep<W> =
  | { outcome: 'done'; value: W }
  | {
      outcome: 'pending';
      cookie: string;
      poll_after_ms: number;
      progress?: { phase: string; deadline_at?: number };
    }
  | WireFailure;

export function fromStep<W, T>(step: WireStep<W>, read: (value: W) => T): Step<T> {
  switch (step.outcome) {
    case 'done':
      return { outcome: 'done', value: read(step.value) };
    case 'pending': {
      const { cookie, poll_after_ms, progress } = step;
      return pending(cookie, poll_after_ms, progress?.phase, progress?.deadline_at);
    }
    case 'failed':
      return {
        outcome: 'failed',
        code: step.code,
        sideEffect: step.side_effect,
        detail: step.detail,
        ...(step.retry_after_ms !== undefined && { retryAfterMs: step.retry_after_ms }),
        ...toHost(step),
      };
  }
}

export function fromInventory(
  inventory: Result<'inventory'>,
  offers: readonly Pick<WireOffer, 'offer_id' | 'datacenters'>[],
): Inventory {
  if (inventory.answer === 'unknown') return inventory;
  const { free: counted } = inventory;
  const free =
    typeof counted === 'number'
      ? offers.flatMap(({ offer_id, datacenters }) =>
          datacenters.map((datacenter) => ({ offer_id, datacenter, units: counted })),
        )
      : counted;
  return {
    answer: 'counted',
    free: free.map(({ offer_id, datacenter, units }) => ({ offerId: offer_id, datacenter, units })),
    ...(inventory.limited_by !== undefined && { limitedBy: inventory.limited_by }),
    ...(inventory.hosts !== undefined && {
      hosts: inventory.hosts.map(({ memory_gb: memoryGb, disk_gb: diskGb, ...host }) => ({
        ...host,
        ...(memoryGb !== undefined && { memoryGb }),
        ...(diskGb !== undefined && { diskGb }),
      })),
    }),
  };
}
