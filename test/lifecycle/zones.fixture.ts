import type { MachineSpec, OwnerRef, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';

export const OFFER = 'h100-sxm-1x';
export const REGION = 'eu-frankfurt';
/**
 * A platform whose hosts are availability zones: it says in which zone a machine is, and nothing of what is below.
 * `quota`: how many machines the project may have, in all zones; `units`: how many fit in a zone.
 */
export function inZones(
  driver: PlatformDriver,
  zones: readonly string[],
  limits: { quota: number; units: number },
): PlatformDriver {
  const zoneOf = new Map<OwnerRef, string>();
  const takenIn = (zone: string) => [...zoneOf].filter(([, taken]) => taken === zone).map(([ref]) => ref);
  const openZones = (avoid: readonly string[], { host }: Pick<MachineSpec, 'host'> = {}) =>
    zones.filter((zone) => !avoid.includes(zone) && (host === undefined || zone === host));
  const roomIn = (zone: string) =>
    Math.max(0, Math.min(limits.units - takenIn(zone).length, limits.quota - zoneOf.size));
  const shown = <T extends { ref: OwnerRef }>(machine: T) => {
    const host = zoneOf.get(machine.ref);
    return host === undefined ? machine : { ...machine, host };
  };
  return {
    ...driver,
    get: async (ref) => {
      const found = await driver.get(ref);
      return found.answer === 'observed' ? { ...found, value: shown(found.value) } : found;
    },
    list: async () => {
      const listing = await driver.list();
      return listing.answer === 'listed' ? { ...listing, items: listing.items.map(shown) } : listing;
    },
    place: async (spec, avoidHosts) => {
      const hosts = openZones(avoidHosts, spec)
        .map((host) => ({ host, units: roomIn(host), counted: takenIn(host) }))
        .filter(({ units }) => units > 0);
      if (hosts.length > 0) return { answer: 'placed', hosts };
      return { answer: 'refused', code: 'capacity', detail: 'no zone has room' };
    },
    create: async (spec, cookie, call) => {
      const step = await driver.create(spec, cookie, call);
      if (spec.host !== undefined) zoneOf.set(spec.ref, spec.host);
      return step.outcome === 'done' ? { ...step, value: shown(step.value) } : step;
    },
    destroy: async (ref, cookie, order, call) => {
      const step = await driver.destroy(ref, cookie, order, call);
      if (step.outcome === 'done') zoneOf.delete(ref);
      return step;
    },
    inventory: async (avoidHosts = []) => {
      const room = openZones(avoidHosts).reduce((sum, zone) => sum + limits.units - takenIn(zone).length, 0);
      const units = Math.min(room, limits.quota - zoneOf.size);
      return {
        answer: 'counted',
        free: [{ offerId: OFFER, datacenter: 'hal-fra1-b', units }],
        counted: [...zoneOf.keys()],
        hosts: zones.map((host) => ({ host, state: avoidHosts.includes(host) ? 'closed' : 'open' })),
        ...(units < room && { limitedBy: [`quota: instances ${zoneOf.size} of ${limits.quota}`] }),
      };
    },
  };
}
