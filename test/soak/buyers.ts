import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { OFFER } from '../support/processes/marketplace.ts';
import type { Answer, MarketClient } from './client.ts';
import { Dice, sleep } from './dice.ts';
import type { Fleet, OwnDeployment, OwnVolume } from './fleet.ts';
import type { Journal } from './journal.ts';
import type { Order, Verb } from './orders.ts';
import type { Team } from './setting.ts';

interface Parts {
  client: MarketClient;
  fleet: Fleet;
  teams: readonly Team[];
  journal: Journal;
  seed: string;
  /** How many deployments there are to be. */
  deployments: number;
}

const WEIGHTS = {
  ...{ create: 8, terminate: 8, pause: 10, resume: 14, restart: 3, read: 12 },
  ...{ 'create volume': 3, 'delete volume': 2, attach: 10, detach: 9, resize: 4 },
};
const PAUSE_MS = [10, 100] as const;
const MAX_VOLUMES = 60;
const SIZE_GB = 100;
const GROWTH_GB = 50;

/** Users, who each send one request after another to any server. */
export class Buyers {
  readonly #parts: Parts;
  #isOpen = true;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  close(): void {
    this.#isOpen = false;
  }

  /** Works until it is closed. */
  async buy(name: string): Promise<void> {
    const dice = new Dice(this.#parts.seed, name);
    while (this.#isOpen) {
      const verb = dice.weighted(WEIGHTS);
      if (await this.#do(verb, dice)) this.#parts.journal.operation(verb);
      await sleep(dice.between(...PAUSE_MS));
    }
  }

  /** Creates a deployment; false: it was not accepted. */
  async create(dice: Dice): Promise<boolean> {
    const { fleet, teams } = this.#parts;
    const team = dice.pick(teams) as Team;
    const order = fleet.order({ verb: 'create', subject: undefined });
    const body = {
      ...OFFER,
      ...{ gpuCount: 1, operatingSystem: 'ubuntu-24.04', ssh_public_key: newPublicKey() },
    };
    const answer = await this.#ask(dice, order, { team, method: 'POST', path: '/api/deployments', body });
    if (answer?.status !== 201) return false;
    order.subject = String(answer.body['id']);
    fleet.addDeployment(order.subject, team);
    return true;
  }

  /** Reads the status of a deployment. */
  async read(dice: Dice, deployment: OwnDeployment): Promise<void> {
    const path = `/api/deployments/${deployment.id}`;
    const answer = await this.#parts.client.send(dice, { team: deployment.team, method: 'GET', path });
    if (answer?.status === 200) deployment.status = toStatus(String(answer.body['status']));
    else if (answer !== null) this.#odd('a deployment cannot be read', deployment.id, answer);
  }

  /** False: there is nothing to do it with now. */
  async #do(verb: keyof typeof WEIGHTS, dice: Dice): Promise<boolean> {
    const { fleet } = this.#parts;
    if (verb === 'create') return fleet.live < this.#parts.deployments && this.create(dice);
    if (verb === 'create volume') return fleet.liveVolumes.length < MAX_VOLUMES && this.#createVolume(dice);
    if (verb === 'attach' || verb === 'detach') return this.#changeAttachment(verb, dice);
    if (verb === 'resize' || verb === 'delete volume') return this.#changeVolume(verb, dice);
    return this.#changeDeployment(verb, dice);
  }

  async #changeDeployment(
    verb: 'terminate' | 'pause' | 'resume' | 'restart' | 'read',
    dice: Dice,
  ): Promise<boolean> {
    const statuses = STATUSES[verb];
    const deployment = this.#pick(dice, ({ status }) => statuses.includes(status));
    if (deployment === undefined) return false;
    return occupied([deployment], async () => {
      if (verb === 'read') return this.read(dice, deployment);
      const { id, team } = deployment;
      const path = `/api/deployments/${id}`;
      const ask =
        verb === 'terminate'
          ? { team, method: 'DELETE' as const, path }
          : { team, method: 'POST' as const, path: `${path}/${verb}` };
      const answer = await this.#ask(dice, this.#parts.fleet.order({ verb, subject: id }), ask);
      deployment.status = answer?.status === 200 ? AFTER[verb] : 'unknown';
    });
  }

  async #changeAttachment(verb: 'attach' | 'detach', dice: Dice): Promise<boolean> {
    const { fleet } = this.#parts;
    const isAttach = verb === 'attach';
    const volume = dice.pick(
      idle(fleet.liveVolumes).filter(({ attachedTo }) => (attachedTo === null) === isAttach),
    );
    if (volume === undefined) return false;
    const deployment = isAttach
      ? this.#pick(dice, ({ status, team }) => status === 'running' && team === volume.team)
      : fleet.deployments.get(volume.attachedTo ?? '');
    if (deployment === undefined || deployment.isBusy) return false;
    return occupied([volume, deployment], async () => {
      const order = fleet.order({ verb, subject: volume.volumeId, deploymentId: deployment.id });
      const path = `/api/volumes/${volume.volumeId}/${verb}`;
      const body = { deploymentId: deployment.id };
      const answer = await this.#ask(dice, order, { team: volume.team, method: 'POST', path, body });
      if (answer?.status === 200) volume.attachedTo = isAttach ? deployment.id : null;
      else await this.#readVolume(dice, volume);
    });
  }

  async #changeVolume(verb: 'resize' | 'delete volume', dice: Dice): Promise<boolean> {
    const { fleet } = this.#parts;
    const volume = dice.pick(
      idle(fleet.liveVolumes).filter(({ attachedTo }) => verb === 'resize' || attachedTo === null),
    );
    if (volume === undefined) return false;
    return occupied([volume], async () => {
      const { volumeId, team } = volume;
      const path = `/api/volumes/${volumeId}`;
      if (verb === 'resize') {
        const sizeGb = volume.sizeGb + GROWTH_GB;
        const order = fleet.order({ verb, subject: volumeId, sizeGb });
        const body = { sizeInGb: sizeGb };
        const answer = await this.#ask(dice, order, { team, method: 'PATCH', path, body });
        if (answer?.status === 200) volume.sizeGb = sizeGb;
        else await this.#readVolume(dice, volume);
        return;
      }
      const answer = await this.#ask(dice, fleet.order({ verb, subject: volumeId }), {
        ...{ team, method: 'DELETE', path },
      });
      if (answer?.status === 200) volume.status = 'ended';
      else await this.#readVolume(dice, volume);
    });
  }

  async #createVolume(dice: Dice): Promise<boolean> {
    const { fleet, teams } = this.#parts;
    const team = dice.pick(teams) as Team;
    const { provider, region } = OFFER;
    const order = fleet.order({ verb: 'create volume', subject: undefined });
    const body = { name: 'data', sizeInGb: SIZE_GB, provider, region };
    const answer = await this.#ask(dice, order, { team, method: 'POST', path: '/api/volumes', body });
    if (answer?.status !== 201) return false;
    order.subject = String(answer.body['volumeId']);
    fleet.addVolume(order.subject, team, SIZE_GB);
    return true;
  }

  async #readVolume(dice: Dice, volume: OwnVolume): Promise<void> {
    const { team, volumeId } = volume;
    const path = `/api/volumes/${volumeId}`;
    const answer = await this.#parts.client.send(dice, { team, method: 'GET', path });
    if (answer?.status !== 200) return;
    const { status, sizeInGb, attachedToDeploymentIds } = answer.body;
    volume.sizeGb = Number(sizeInGb);
    volume.attachedTo = (attachedToDeploymentIds as string[])[0] ?? null;
    if (status === 'deleting' || status === 'deleted') volume.status = 'ended';
  }

  async #ask(dice: Dice, order: Order, ask: Parameters<MarketClient['send']>[1]): Promise<Answer | null> {
    const answer = await this.#parts.client.send(dice, ask, order);
    if (answer === null) return null;
    order.answeredAt = Date.now();
    order.status = answer.status;
    if (MUST_BE_TAKEN.includes(order.verb) && answer.status === 400)
      this.#odd(`a valid ${order.verb} is answered 400`, '', answer);
    if (answer.status === 404) this.#odd('something of a team is not found', order.subject ?? '', answer);
    return answer;
  }

  #pick(dice: Dice, fits: (deployment: OwnDeployment) => boolean): OwnDeployment | undefined {
    return dice.pick(idle([...this.#parts.fleet.deployments.values()]).filter(fits));
  }

  #odd(what: string, id: string, answer: Answer): void {
    this.#parts.journal.lose(what, { id, ...answer });
  }
}

/** They depend on nothing that another buyer may change. */
const MUST_BE_TAKEN: readonly Verb[] = ['create', 'create volume'];
const STATUSES: Readonly<
  Record<'terminate' | 'pause' | 'resume' | 'restart' | 'read', readonly OwnDeployment['status'][]>
> = {
  terminate: ['running', 'stopped'],
  pause: ['running'],
  resume: ['stopped'],
  restart: ['running'],
  read: ['unknown', 'deploying'],
};
const AFTER = { terminate: 'ended', pause: 'stopped', resume: 'running', restart: 'running' } as const;

function toStatus(status: string): OwnDeployment['status'] {
  if (status === 'deploying' || status === 'running' || status === 'stopped') return status;
  return 'ended';
}

function idle<T extends { isBusy: boolean }>(all: readonly T[]): T[] {
  return all.filter(({ isBusy }) => !isBusy);
}

async function occupied(things: { isBusy: boolean }[], work: () => Promise<void>): Promise<true> {
  for (const thing of things) thing.isBusy = true;
  try {
    await work();
  } finally {
    for (const thing of things) thing.isBusy = false;
  }
  return true;
}
