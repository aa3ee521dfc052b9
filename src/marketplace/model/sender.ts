import type { LeaseRecord } from '../../work/lease.ts';
import type { DeploymentIntent, DeploymentRecord } from './deployment-record.ts';

/** A deployment with the intent that was written into it. */
export type Asked = DeploymentRecord & { action: DeploymentIntent };

/**
 * Sends intents from this process. A request then writes the first attempt with the intent, which saves a transaction.
 */
export interface Sender {
  /** The lease under which this process can send an intent of the deployment at once; null: it cannot. */
  leaseFor(deployment: Pick<DeploymentRecord, 'id' | 'providerId'>): LeaseRecord | null;
  /** Sends the first attempt, which is already committed. */
  send(asked: Asked): void;
}
