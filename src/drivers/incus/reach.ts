import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  Call,
  Endpoint,
  ObservedMachine,
  OwnerRef,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Forward, IncusApi, Instance } from './api.ts';
import { isConflict } from './errors.ts';
import { Forwards, NoPortLeft } from './forwards.ts';
import { POLL_MS } from './operations.ts';
import type { IncusConfig, IncusOffer } from './options.ts';
import { offerOf } from './placement.ts';
import { addressOf, fromPlatform, isRunning, mark, phases, SSH_PORT } from './translate.ts';

interface ReachDeps {
  api: IncusApi;
  options: IncusConfig;
  catalog: Catalog;
}

/** Endpoints of machines: at their own address, or at ports of their members. */
export class Reach {
  readonly #deps: ReachDeps;
  readonly #forwards: Forwards | undefined;

  constructor(deps: ReachDeps) {
    this.#deps = deps;
    const { port_forwards: settings } = deps.options;
    this.#forwards = settings && new Forwards(deps.api, settings);
  }

  /** Pending until the machine has an endpoint. */
  async reached(instance: Instance, call?: Call): Promise<Step<ObservedMachine>> {
    if (addressOf(instance) === undefined) return pending('address', POLL_MS);
    try {
      await this.#ensure(instance, call);
    } catch (error) {
      if (error instanceof NoPortLeft) return failed('capacity', error.message, 'certain');
      if (isConflict(error)) return pending('address', POLL_MS);
      throw error;
    }
    const machine = await this.show(instance);
    return machine.endpoint === undefined
      ? failed('invalid', `port_forwards.addresses has no address for ${instance.location}`, 'certain')
      : done(machine);
  }

  /**
   * Restores the ports of a machine. Another Berth that changed the same address at the same time may have removed
   * them.
   */
  async restore(instance: Instance): Promise<void> {
    if (!isUp(instance)) return;
    try {
      await this.#ensure(instance);
    } catch (error) {
      if (!(error instanceof NoPortLeft) && !isConflict(error)) throw error;
    }
  }

  lacksPorts(instance: Instance, forwards: readonly Forward[]): boolean {
    const isReached = (): boolean => this.#forwards?.endpointOf(instance, forwards) !== undefined;
    return (
      this.#forwards !== undefined && isUp(instance) && addressOf(instance) !== undefined && !isReached()
    );
  }

  async #ensure(instance: Instance, call?: Call): Promise<void> {
    const offer = this.#offerOf(instance);
    await this.#forwards?.ensure(instance, offer.network ?? this.#deps.options.network, offer, call);
  }

  async show(instance: Instance, isMoving = false): Promise<ObservedMachine> {
    const network = this.#offerOf(instance).network ?? this.#deps.options.network;
    const forwards = this.#forwards === undefined ? [] : await this.#deps.api.forwards(network);
    return fromPlatform(instance, this.endpointOf(instance, forwards), isMoving);
  }

  /** The forwards of every network that has machines. */
  async forwards(): Promise<Forward[]> {
    if (this.#forwards === undefined) return [];
    return (await Promise.all(this.#networks().map((network) => this.#deps.api.forwards(network)))).flat();
  }

  endpointOf(instance: Instance, forwards: readonly Forward[]): Endpoint | undefined {
    if (this.#forwards !== undefined) return this.#forwards.endpointOf(instance, forwards);
    const publicIp = addressOf(instance);
    const sshUsername = instance.config[mark.loginUser] ?? 'root';
    return publicIp === undefined ? undefined : { publicIp, sshPort: SSH_PORT, sshUsername };
  }

  /** Removes the forwards to a machine that is being removed; returns whether there were any. */
  async remove(ref: OwnerRef, order: DestroyOrder, call?: Call): Promise<boolean> {
    let hadSome = false;
    for (const network of this.#networks())
      if (await this.#forwards?.remove(ref, network, order, call)) hadSome = true;
    return hadSome;
  }

  /** Removes ports that a late call has forwarded to a machine that is gone. */
  async sweep(
    forwards: readonly Forward[],
    known: readonly string[],
    isGone: (ref: OwnerRef) => Promise<boolean>,
  ): Promise<void> {
    for (const ref of this.#forwards?.strays(forwards, known) ?? [])
      if (await isGone(ref)) await this.takeBack(ref);
  }

  /** Removes the machine's ports, but keeps the shared forward objects. */
  async takeBack(ref: OwnerRef, call?: Call): Promise<void> {
    for (const network of this.#networks()) await this.#forwards?.sweep(ref, network, call);
  }

  #networks(): string[] {
    const { options, catalog } = this.#deps;
    const ofOffers = [...catalog.offers.values()].flatMap((one) => offerOf(one).network ?? []);
    return [...new Set([options.network, ...ofOffers])];
  }

  #offerOf({ config }: Instance): IncusOffer {
    return offerOf(this.#deps.catalog.offers.get(config[mark.offer] ?? ''));
  }
}

function isUp(instance: Instance): boolean {
  return instance.config[mark.phase] === phases.created && isRunning(instance);
}
