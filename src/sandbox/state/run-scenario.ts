import type { Configuration } from '../../contract/configuration.ts';
import type { Instance } from '../../contract/instance.ts';
import type { Volume, VolumeLocation } from '../../contract/volume.ts';
import { Fatal } from '../../ports/errors.ts';
import { toProviderName } from '../options.ts';
import type { SandboxParts } from '../parts.ts';
import type { Scenario, ScenarioStep } from './scenario-format.ts';

/** The sandbox that a scenario acts on. Requests go directly to the servers, without faults and without the journal. */
export interface ScenarioTarget {
  sandbox: Pick<SandboxParts, 'clock' | 'providers' | 'faults' | 'transitions'>;
  capacity: 'unlimited' | 'catalog';
  send(request: ScenarioRequest): Promise<{ status: number; body: unknown }>;
}

export interface ScenarioRequest {
  provider: string;
  /** Undefined for the sandbox's account. */
  account: string | undefined;
  method: string;
  path: string;
  body?: unknown;
}

/** The resources that a scenario created, by the names that it gave. */
export interface Made {
  provider: string;
  account: string | undefined;
  id: string;
}

type Step<Do extends ScenarioStep['do']> = Extract<ScenarioStep, { do: Do }>;

const SAMPLE_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM scenario@example.com';
/** The tenant that holds the capacity of a sold-out offer. */
const NEIGHBOUR = 'neighbour';
const CHECK_EVERY_MS = 2_000;
/** Longer than any transition, even of bare metal. */
const LONGEST_WAIT_MS = 4 * 3_600_000;

/** Runs the steps of a scenario in order. @throws {Fatal} with the step that fails */
export async function runScenario(
  target: ScenarioTarget,
  { steps = [] }: Pick<Scenario, 'steps'>,
): Promise<ReadonlyMap<string, Made>> {
  const run = new ScenarioRun(target);
  for (const [index, step] of steps.entries()) {
    try {
      await run.do(step);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Fatal(`steps[${index}] (${step.do}): ${reason}`, { cause: error });
    }
  }
  return run.made;
}

class ScenarioRun {
  readonly made = new Map<string, Made>();
  readonly #target: ScenarioTarget;

  constructor(target: ScenarioTarget) {
    this.#target = target;
  }

  async do(step: ScenarioStep): Promise<unknown> {
    const { clock, transitions } = this.#target.sandbox;
    switch (step.do) {
      case 'create_instance':
        return this.#createInstances(step);
      case 'create_volume':
        return this.#createVolume(step);
      case 'stop':
      case 'start':
      case 'destroy':
        return this.#act(step);
      case 'sell_out':
        return this.#sellOut(step);
      case 'arm':
        return this.#arm(step);
      case 'transitions':
        return transitions.set(this.#withIds(step.transitions));
      case 'advance':
        return clock.advance(step.by);
      case 'advance_until_idle':
        return clock.advanceUntilIdle();
      case 'request':
        return this.#request(step);
    }
  }

  async #arm({ fault: { fault, ...options }, if_made: ifMade }: Step<'arm'>): Promise<void> {
    const { instance, volume } = options;
    const isMade = [instance, volume].every((name) => name === undefined || this.made.has(name));
    if (isMade || !ifMade) await this.#target.sandbox.faults.arm(fault, this.#withIds(options));
  }

  /** Replaces the names of earlier steps by ids. */
  #withIds<S extends { instance?: string | undefined; volume?: string | undefined }>(setting: S): S {
    const idOf = (name: string | undefined) => name && (this.made.get(name)?.id ?? name);
    return { ...setting, instance: idOf(setting.instance), volume: idOf(setting.volume) };
  }

  async #createInstances(step: Step<'create_instance'>): Promise<void> {
    const { as, account, count = 1, until = 'ONLINE' } = step;
    const provider = this.#provider(step.provider);
    const offer = await this.#offer({ ...step, provider });
    const made: Made[] = [];
    for (let nth = 1; nth <= count; nth++) {
      const name = count === 1 ? as : `${as}-${nth}`;
      const { id } = await this.#ask<Instance>(201, {
        ...{ provider, account, method: 'POST', path: '/v1/instances' },
        body: { ...offer, name, ssh_keys: [SAMPLE_KEY] },
      });
      made.push(this.#remember(name, { provider, account, id }));
    }
    if (until === 'STOPPED') {
      await this.#waitFor(made, 'ONLINE');
      for (const one of made) await this.#send(200, one, 'stop');
    }
    await this.#waitFor(made, until);
  }

  /** The requested offer, or the cheapest available one with a region. */
  async #offer({
    provider,
    account,
    configuration_id: id,
    region,
  }: Pick<Step<'create_instance'>, 'account' | 'configuration_id' | 'region'> & { provider: string }) {
    const path = id === undefined ? '/v1/availability' : '/v1/configurations';
    const { configurations } = await this.#ask<{ configurations: Configuration[] }>(200, {
      provider,
      account,
      method: 'GET',
      path,
    });
    const [offer] = configurations
      .filter((configuration) => id === undefined || configuration.id === id)
      .filter(({ regions }) => region === undefined || regions.includes(region))
      .sort((a, b) => a.price_per_hour - b.price_per_hour);
    if (offer === undefined)
      throw new Fatal(
        `${provider} sells no ${id ?? 'offer'} ${region === undefined ? 'now' : `in ${region}`}`,
      );
    return { configuration_id: offer.id, region: region ?? offer.regions[0] };
  }

  async #createVolume({
    as,
    account,
    size_gb = 100,
    attach_to: labels = [],
    ...step
  }: Step<'create_volume'>) {
    const provider = this.#provider(step.provider);
    const to = { provider, account };
    const { locations } = await this.#ask<{ locations: VolumeLocation[] }>(200, {
      ...{ ...to, method: 'GET', path: '/v1/volumes/locations' },
    });
    const instances = labels.map((label) => this.#known(label).id);
    const region = step.region ?? (await this.#regionOf(labels[0])) ?? locations[0]?.id;
    const { id } = await this.#ask<Volume>(201, {
      ...{ ...to, method: 'POST', path: '/v1/volumes' },
      body: { name: as, size_gb, region, instance_ids: instances.length > 0 ? instances : undefined },
    });
    this.#remember(as, { ...to, id });
    const goal = instances.length > 0 ? 'ATTACHED' : 'AVAILABLE';
    await this.#until(`volume ${as} is ${goal}`, async () => {
      const { status } = await this.#ask<Volume>(200, { ...to, method: 'GET', path: `/v1/volumes/${id}` });
      return status === goal;
    });
  }

  async #regionOf(label: string | undefined): Promise<string | undefined> {
    if (label === undefined) return undefined;
    const { id, ...to } = this.#known(label);
    return (await this.#ask<Instance>(200, { ...to, method: 'GET', path: `/v1/instances/${id}` })).region;
  }

  async #act({ do: action, instance, wait = true }: Step<'stop' | 'start' | 'destroy'>): Promise<void> {
    const known = this.#known(instance);
    await this.#send(200, known, action);
    if (wait) await this.#waitFor([known], { stop: 'STOPPED', start: 'ONLINE', destroy: 'gone' }[action]);
  }

  async #sellOut({ configuration_id, region, leave = 0, ...step }: Step<'sell_out'>): Promise<void> {
    if (this.#target.capacity === 'unlimited')
      throw new Fatal(
        'the capacity of this sandbox is unlimited: start it with `capacity: catalog`, or arm the fault sold-out',
      );
    const provider = this.#provider(step.provider);
    const made: Made[] = [];
    for (;;) {
      const { status, body } = await this.#target.send({
        ...{ provider, account: NEIGHBOUR, method: 'POST', path: '/v1/instances' },
        body: { configuration_id, region, ssh_keys: [SAMPLE_KEY] },
      });
      if (status === 409) break;
      if (status !== 201) throw new Fatal(`it was answered ${status} ${JSON.stringify(body)}`);
      made.push({ provider, account: NEIGHBOUR, id: (body as Instance).id });
    }
    await this.#waitFor(made, 'ONLINE');
    const freed = made.slice(0, leave);
    for (const one of freed) await this.#send(200, one, 'destroy');
    await this.#waitFor(freed, 'gone');
  }

  async #request({ account, method, path, as, status, ...step }: Step<'request'>): Promise<void> {
    const names = `${path} ${JSON.stringify(step.body ?? {})}`.matchAll(/\{([^{}"]+)\}/g);
    if (step.if_made && ![...names].every(([, label = '']) => this.made.has(label))) return;
    const body = step.body && this.#withIdsOf(step.body);
    const provider = step.provider === 'marketplace' ? 'marketplace' : this.#provider(step.provider);
    const filled = path.replace(/\{([^}]+)\}/g, (_, label) => encodeURIComponent(this.#known(label).id));
    const answer = await this.#target.send({ provider, account, method, path: filled, body });
    if (status !== undefined && answer.status !== status)
      throw new Fatal(`it was answered ${answer.status}, not ${status}: ${JSON.stringify(answer.body)}`);
    const { id } = (answer.body ?? {}) as { id?: unknown };
    if (as !== undefined && typeof id === 'string') this.#remember(as, { provider, account, id });
  }

  /** Replaces `{NAME}` in the body by ids. Unknown names stay. */
  #withIdsOf(body: object): unknown {
    return JSON.parse(JSON.stringify(body), (_, value: unknown) => {
      const [, label] = (typeof value === 'string' && /^\{(.+)\}$/.exec(value)) || [];
      return (label !== undefined && this.made.get(label)?.id) || value;
    });
  }

  async #send(expected: number, { id, ...to }: Made, action: 'stop' | 'start' | 'destroy'): Promise<void> {
    const path = `/v1/instances/${id}`;
    const request =
      action === 'destroy' ? { method: 'DELETE', path } : { method: 'POST', path: `${path}/${action}` };
    await this.#ask(expected, { ...to, ...request });
  }

  async #ask<Body>(expected: number, request: ScenarioRequest): Promise<Body> {
    const { status, body } = await this.#target.send(request);
    if (status === expected) return body as Body;
    const { error } = (body ?? {}) as { error?: { message?: string } };
    throw new Fatal(
      `${request.method} ${request.path} was answered ${status}: ${error?.message ?? 'no reason given'}`,
    );
  }

  /** Advances time until all resources have the status. They belong to one account. */
  async #waitFor(made: readonly Made[], goal: string): Promise<void> {
    const [first] = made;
    if (first === undefined) return;
    const { provider, account } = first;
    const they = made.length === 1 ? `${first.id} is` : `${made.length} instances are`;
    await this.#until(`${they} ${goal}`, async () => {
      const list = { provider, account, method: 'GET', path: '/v1/instances' };
      const { instances } = await this.#ask<{ instances: Instance[] }>(200, list);
      const statuses = new Map(instances.map(({ id, status }) => [id, status]));
      return made.every(({ id }) => (statuses.get(id) ?? 'gone') === goal);
    });
  }

  async #until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
    const { clock } = this.#target.sandbox;
    const end = clock.now() + LONGEST_WAIT_MS;
    while (!(await isTrue())) {
      if (clock.now() > end) throw new Fatal(`timed out waiting until ${what}`);
      await clock.advance(CHECK_EVERY_MS);
    }
  }

  #provider(name: string | undefined): string {
    const { providers } = this.#target.sandbox;
    const [first = ''] = providers.keys();
    const full = name === undefined ? first : toProviderName(name);
    if (!providers.has(full)) throw new Fatal(`the sandbox has no provider ${name}`);
    return full;
  }

  #remember(label: string, made: Made): Made {
    this.made.set(label, made);
    return made;
  }

  #known(label: string): Made {
    const made = this.made.get(label) ?? this.made.get(`${label}-1`);
    if (made === undefined) throw new Fatal(`no earlier step made ${label}`);
    return made;
  }
}
