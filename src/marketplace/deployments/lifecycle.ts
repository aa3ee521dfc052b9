import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Deployment, RebootStatus, StopQuote } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestamp } from '../contract/values.ts';
import { type Price, priceFor } from '../discounts/price.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import type { DeploymentIntent, DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { whenWritten } from '../model/waiting.ts';
import { pauseUnsupportedReason, restartUnsupportedReason } from '../providers/capabilities.ts';
import { type Providers, requireProvider } from '../providers/provider.ts';
import { ask, assertStatus, assertSupported, awaitDeployment, type LifecycleDeps } from './intents.ts';
import { minimumRuntimeMinutes } from './terminate.ts';
import { showDeployment } from './to-deployment.ts';
import { originalStoppedRate } from './transition.ts';

/**
 * M: POST .../pause: "GPU released, disk kept, billing at `stoppedHourlyRate`".
 * @throws {ApiError} PROVIDER_SLOW: it may have succeeded, and a poll will show it; any other: nothing changed
 */
export async function pauseDeployment(deps: LifecycleDeps, caller: Caller, id: string): Promise<Deployment> {
  const asked = await ask(deps, caller, id, 'pause', (record) => assertCanPause(deps.providers, record));
  return showDeployment(deps, await awaitDeployment(deps, asked, ({ status }) => status === 'stopped'));
}

/** @throws {ApiError} ACTION_UNSUPPORTED, INVALID_STATUS, or PROVIDER_REFUSED if the stopped rate is unknown */
export function assertCanPause(providers: Providers, record: DeploymentRecord): void {
  assertSupported(pauseUnsupportedReason(requireProvider(providers, record), record));
  assertStatus(record, 'running', 'stopped');
  stoppedPriceOf(providers, record);
}

/** M: GET .../pause-quote: the cost while stopped. @throws {ApiError} as {@link assertCanPause} */
export async function quotePause(
  { store, clock, providers }: LifecycleDeps,
  caller: Caller,
  id: string,
): Promise<StopQuote> {
  const record = await ownDeployment(store.read, caller, id, 'read');
  assertCanPause(providers, record);
  const price = await priceFor(store.read, record.teamId, stoppedPriceOf(providers, record), clock.now());
  return {
    hourlyRate: usdFromMicroUsd(price.rateMicroUsd),
    originalHourlyRate: usdFromMicroUsd(price.originalRateMicroUsd),
    currentHourlyRate: usdFromMicroUsd(record.rateMicroUsd),
    breakdown: toBreakdown(record, price),
  };
}

/** The stopped rate in micro-USD per hour, before discounts. @throws {ApiError} PROVIDER_REFUSED if it is unknown */
function stoppedPriceOf(providers: Providers, record: DeploymentRecord): number {
  const price = originalStoppedRate(providers, record);
  if (price !== null) return price;
  throw new ApiError(
    'PROVIDER_REFUSED',
    `${record.providerId} does not announce the price of the stopped instance now; nothing changed.`,
  );
}

/** The parts of the stopped rate. They add up to the rate. */
function toBreakdown(
  { storageGb }: DeploymentRecord,
  { originalRateMicroUsd, rateMicroUsd, discountPercentage }: Price,
): StopQuote['breakdown'] {
  const disk = { label: `Disk of ${storageGb} GB, kept`, amount: usdFromMicroUsd(originalRateMicroUsd) };
  if (discountPercentage === 0) return [disk];
  const amount = usdFromMicroUsd(rateMicroUsd - originalRateMicroUsd);
  return [disk, { label: `Discount of ${discountPercentage} %`, amount }];
}

/**
 * M: POST .../resume: "A failed start … leaves the instance and disk unchanged and stopped" (M: States, rule 5).
 * @throws {ApiError} PROVIDER_SLOW: it may have succeeded, and a poll will show it; any other: nothing changed
 */
export async function resumeDeployment(deps: LifecycleDeps, caller: Caller, id: string): Promise<Deployment> {
  const { store, clock, providers } = deps;
  // The user is read before the transaction, because billing mails lock the team first and then its users.
  const known = await ownDeployment(store.read, caller, id, 'read');
  const minimum = await minimumRuntimeMinutes(deps, known);
  const asked = await ask(deps, caller, id, 'resume', async (record, tx) => {
    requireProvider(providers, record);
    assertStatus(record, 'stopped', 'started');
    // From here on the team is locked, after the deployment.
    const { teamId, originalRateMicroUsd } = record;
    const { rateMicroUsd } = await priceFor(tx, teamId, originalRateMicroUsd, clock.now());
    const commitment = { teamId, rateMicroUsd, insteadOf: id, minimumRuntimeMinutes: minimum };
    await assertAffordable(deps, tx, commitment, clock.now());
  });
  return showDeployment(deps, await awaitDeployment(deps, asked, ({ status }) => status === 'running'));
}

/**
 * M: POST .../restart: "never emulated by stop plus start". The restart is in flight until the provider reports the
 * end.
 * @throws {ApiError} PROVIDER_SLOW: it may have succeeded; any other: nothing changed
 */
export async function restartDeployment(
  deps: LifecycleDeps,
  caller: Caller,
  id: string,
): Promise<Deployment> {
  const asked = await ask(deps, caller, id, 'restart', (record) => assertCanRestart(deps.providers, record));
  const isAccepted = ({ status, action }: DeploymentRecord) =>
    status === 'running' && action?.id === asked.action.id && action.answer === 'accepted';
  return showDeployment(deps, await awaitDeployment(deps, asked, isAccepted));
}

/** @throws {ApiError} ACTION_UNSUPPORTED or INVALID_STATUS */
export function assertCanRestart(providers: Providers, record: DeploymentRecord): void {
  assertSupported(restartUnsupportedReason(requireProvider(providers, record), record));
  assertStatus(record, 'running', 'restarted');
}

/** For this long after the call, the provider may not show the restart yet. */
const RESTART_SHOWS_MS = 5_000;
/** How long a read waits for the worker to poll the provider. */
const FRESH_WITHIN_MS = 2_000;

/**
 * M: GET .../reboot-status. A restart is in flight until the worker has observed its end.
 * @throws {ApiError} NOT_FOUND, FORBIDDEN or ACTION_UNSUPPORTED
 */
export async function readRebootStatus(
  deps: LifecycleDeps,
  caller: Caller,
  id: string,
): Promise<RebootStatus> {
  const { store, clock, options, providers } = deps;
  const record = await ownDeployment(store.read, caller, id, 'read');
  assertSupported(restartUnsupportedReason(requireProvider(providers, record), record));
  const now = clock.now();
  const isInFlight = ({ action }: DeploymentRecord) =>
    action?.kind === 'restart' && now - action.since < options.polling.actionMs;
  if (!isInFlight(record) || record.action === null) return { restarting: false };
  const { since } = record.action;
  if (!mayBeOver(record.action, now)) return { restarting: true, since: toTimestamp(since) };
  await store.transact((tx) => tx.signals.wake(record.providerId, id));
  const isOver = await whenWritten(deps, id, now + FRESH_WITHIN_MS, async () => {
    const seen = await store.read.deployments.byId(id);
    if (seen === null || !isInFlight(seen)) return true;
    return (seen.action?.checkedAt ?? 0) >= now ? false : null;
  });
  return isOver === true ? { restarting: false } : { restarting: true, since: toTimestamp(since) };
}

/** Whether a restart may be over at `now`. Before that, the provider's answer about it is not used. */
export function mayBeOver({ sentAt }: DeploymentIntent, now: number): boolean {
  return sentAt !== null && now - sentAt >= RESTART_SHOWS_MS;
}
