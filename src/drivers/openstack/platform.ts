import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { PlatformDriver, Step, VolumeDriver } from '../../orchestrator/model/platform-driver.ts';
import { pending } from '../../platform-model/steps.ts';
import type * as port from '../kit/method.ts';
import type { CloudApi, Server, Volume } from './api.ts';
import { type OpenStackConfig, type OpenStackOffer, openstackOfferSchema } from './options.ts';

export interface Platform {
  api: CloudApi;
  options: OpenStackConfig;
  catalog: Catalog;
}

export type MachineMethod<Name extends keyof PlatformDriver> = port.MachineMethod<Platform, Name>;
export type VolumeMethod<Name extends keyof VolumeDriver> = port.VolumeMethod<Platform, Name>;

/** How often a step that waits for the cloud looks, in milliseconds. */
export const POLL_MS = 2_000;

/** An offer's `machine:`. @throws {Error} if the catalog no longer has the offer */
export function offerOf({ catalog }: Pick<Platform, 'catalog'>, offerId: string): OpenStackOffer {
  return openstackOfferSchema.parse(catalog.offers.get(offerId)?.machine);
}

/** How long Nova or Cinder may take for one task, in milliseconds. Then an operator should look. */
const TASK_WITHIN_MS = 20 * 60_000;

/** The next call of a step that waits for a server, in Nova's own words for what it is doing. */
export function waitForServer(cookie: string, { status, updated, ...server }: Server): Step<never> {
  const task = server['OS-EXT-STS:task_state'];
  return waitFor(cookie, task ? `${status}, ${task}` : status, updated);
}

/** A volume at rest has no deadline: what it is asked for now began after its last change. */
export function waitForVolume(
  cookie: string,
  { status, updated_at: updated }: Pick<Volume, 'status' | 'updated_at'>,
): Step<never> {
  const isBusy = status.endsWith('ing') || status === 'reserved';
  return waitFor(cookie, `volume ${status}`, isBusy && updated ? toUtc(updated) : undefined);
}

/** Cinder's times are in UTC and do not say so. */
export const toUtc = (time: string): string => `${time.replace(/Z$/, '')}Z`;

function waitFor(cookie: string, phase: string, updated: string | undefined): Step<never> {
  const since = Date.parse(updated ?? '');
  return pending(cookie, POLL_MS, phase, Number.isNaN(since) ? undefined : since + TASK_WITHIN_MS);
}
