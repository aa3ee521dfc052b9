import type { Order } from './orders.ts';
import type { Team } from './setting.ts';

/** A deployment as its buyer knows it. */
export interface OwnDeployment {
  id: string;
  team: Team;
  /** By the last answer; `unknown`: what was asked for since has no clear answer. */
  status: 'deploying' | 'running' | 'stopped' | 'ended' | 'unknown';
  /** Whether a buyer asks something of it: one request at a time is about it. */
  isBusy: boolean;
}

/** A volume as its buyer knows it. */
export interface OwnVolume {
  volumeId: string;
  team: Team;
  status: 'creating' | 'there' | 'ended' | 'unknown';
  attachedTo: string | null;
  sizeGb: number;
  isBusy: boolean;
}

/** All that users bought, and all that they asked for. */
export class Fleet {
  readonly deployments = new Map<string, OwnDeployment>();
  readonly volumes = new Map<string, OwnVolume>();
  readonly orders: Order[] = [];

  /** How many deployments are not over, as far as their buyers know. */
  get live(): number {
    let count = 0;
    for (const { status } of this.deployments.values()) if (status !== 'ended') count++;
    return count;
  }

  get liveVolumes(): OwnVolume[] {
    return [...this.volumes.values()].filter(({ status }) => status !== 'ended');
  }

  addDeployment(id: string, team: Team, status: OwnDeployment['status'] = 'deploying'): void {
    this.deployments.set(id, { id, team, status, isBusy: false });
  }

  addVolume(volumeId: string, team: Team, sizeGb: number): void {
    this.volumes.set(volumeId, {
      ...{ volumeId, team, sizeGb, status: 'creating', attachedTo: null, isBusy: false },
    });
  }

  /** Writes an order down before it is sent. */
  order(order: Omit<Order, 'sentAt' | 'answeredAt' | 'status'>): Order {
    const sent: Order = { ...order, sentAt: Date.now(), answeredAt: null, status: null };
    this.orders.push(sent);
    return sent;
  }
}
