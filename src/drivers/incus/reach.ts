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

/** Where machines are reached: at their own address, or at ports of their members. */
export class Reach {
  readonly #deps: ReachDeps;
  readonly #forwards: Forwards | undefined;

  constructor(deps: ReachDeps) {
    this.#deps = deps;
    const { port_forwards: settings } = deps.options;
    this.#forwards = settings && new Forwards(deps.api, settings);
  }

  /** Where it is reached, once it is. */
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
      ? failed('invalid', `port_forwards.addresses names no address of ${instance.location}`, 'certain')
      : done(machine);
  }

  /** Another Berth that changed the forwards of the same address at the same moment may have removed them. */
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

  /** Of every network that machines are on. */
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

  /** Removes what leads to a machine that is removed; whether there was anything. */
  async remove(ref: OwnerRef, order: DestroyOrder, call?: Call): Promise<boolean> {
    let hadSome = false;
    for (const network of this.#networks())
      if (await this.#forwards?.remove(ref, network, order, call)) hadSome = true;
    return hadSome;
  }

  /** Takes back the ports that a call which came late has forwarded to a machine that is gone. */
  async sweep(
    forwards: readonly Forward[],
    known: readonly string[],
    isGone: (ref: OwnerRef) => Promise<boolean>,
  ): Promise<void> {
    for (const ref of this.#forwards?.strays(forwards, known) ?? [])
      if (await isGone(ref)) await this.takeBack(ref);
  }

  /** Of what leads to a machine nothing is left but the object that others share. */
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
