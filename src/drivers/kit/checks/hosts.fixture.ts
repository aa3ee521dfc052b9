import type {
  Listing,
  ObservedMachine,
  ObservedVolume,
  OwnerRef,
  Placing,
  PlatformDriver,
  Presence,
  Step,
  VolumeDriver,
} from '../../../orchestrator/model/platform-driver.ts';
import { failed } from '../../../platform-model/steps.ts';

type OnHost = { ref: OwnerRef; host?: string };
interface Spec {
  ref: OwnerRef;
  host?: string;
  avoidHosts?: readonly string[];
}

/** Which host holds each resource. Each host has `room` places. */
class HostMap {
  readonly #names: readonly string[];
  readonly #room: number;
  readonly #hosts = new Map<OwnerRef, string>();

  constructor(names: readonly string[], room: number) {
    this.#names = names;
    this.#room = room;
  }

  place({ host, ref }: Spec, avoidHosts: readonly string[] = []): Placing {
    const hosts = this.#names
      .filter((name) => !avoidHosts.includes(name) && (host ?? name) === name)
      .map((name) => {
        const counted = [...this.#hosts].flatMap(([other, at]) =>
          at === name && other !== ref ? [other] : [],
        );
        return { host: name, units: this.#room - counted.length, counted };
      })
      .filter(({ units }) => units > 0);
    if (hosts.length > 0) return { answer: 'placed', hosts };
    return { answer: 'refused', code: 'capacity', detail: 'no host has room' };
  }

  async create<T extends OnHost>(spec: Spec, call: () => Promise<Step<T>>): Promise<Step<T>> {
    const placing = this.place(spec, spec.avoidHosts);
    if (placing.answer !== 'placed') return failed('capacity', 'no host has room');
    const step = await call();
    if (step.outcome !== 'failed' && !this.#hosts.has(spec.ref))
      this.#hosts.set(spec.ref, placing.hosts[0]?.host ?? '');
    return this.inStep(step);
  }

  async destroy(ref: OwnerRef, call: () => Promise<Step<null>>): Promise<Step<null>> {
    const step = await call();
    if (step.outcome === 'done') this.#hosts.delete(ref);
    return step;
  }

  inStep<T extends OnHost>(step: Step<T>): Step<T> {
    return step.outcome === 'done' ? { ...step, value: this.#at(step.value) } : step;
  }

  inPresence<T extends OnHost>(presence: Presence<T>): Presence<T> {
    return presence.answer === 'observed' ? { ...presence, value: this.#at(presence.value) } : presence;
  }

  inListing<T extends OnHost>(listing: Listing<T>): Listing<T> {
    return listing.answer === 'listed'
      ? { ...listing, items: listing.items.map((item) => this.#at(item)) }
      : listing;
  }

  #at<T extends OnHost>(item: T): T {
    const host = this.#hosts.get(item.ref);
    return host === undefined ? item : { ...item, host };
  }
}

/** Presents a driver's platform as several hosts among which the core chooses. Each has room for one machine. */
export function withHosts(driver: PlatformDriver, names: readonly string[]): PlatformDriver {
  const hosts = new HostMap(names, 1);
  const shown = async (step: Promise<Step<ObservedMachine>>) => hosts.inStep(await step);
  return {
    ...driver,
    get: async (ref) => hosts.inPresence(await driver.get(ref)),
    list: async () => hosts.inListing(await driver.list()),
    place: async (spec, avoidHosts) => hosts.place(spec, avoidHosts),
    create: (spec, cookie, call) => hosts.create(spec, () => driver.create(spec, cookie, call)),
    stop: (ref, cookie, call) => shown(driver.stop(ref, cookie, call)),
    start: (ref, cookie, call) => shown(driver.start(ref, cookie, call)),
    restart: (ref, id, cookie, call) => shown(driver.restart(ref, id, cookie, call)),
    destroy: (ref, cookie, order, call) => hosts.destroy(ref, () => driver.destroy(ref, cookie, order, call)),
    ...(driver.volumes !== undefined && { volumes: withVolumeHosts(driver.volumes, names) }),
  };
}

function withVolumeHosts(volumes: VolumeDriver, names: readonly string[]): VolumeDriver {
  const hosts = new HostMap(names, 100);
  const shown = async (step: Promise<Step<ObservedVolume>>) => hosts.inStep(await step);
  return {
    ...volumes,
    get: async (ref) => hosts.inPresence(await volumes.get(ref)),
    list: async () => hosts.inListing(await volumes.list()),
    place: async (spec, avoidHosts) => hosts.place(spec, avoidHosts),
    create: (spec, cookie, call) => hosts.create(spec, () => volumes.create(spec, cookie, call)),
    copy: (_ref, spec, cookie, call) => hosts.create(spec, () => volumes.create(spec, cookie, call)),
    resize: (ref, sizeGb, cookie, call) => shown(volumes.resize(ref, sizeGb, cookie, call)),
    destroy: (ref, cookie, order, call) =>
      hosts.destroy(ref, () => volumes.destroy(ref, cookie, order, call)),
  };
}
