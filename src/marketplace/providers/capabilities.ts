import { berthAnswerSchema } from '../../client/answers.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Configuration } from '../../contract/configuration.ts';
import type { UnavailableReason } from '../../contract/extensions.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type { InstanceType } from '../contract/values.ts';
import type { MachineRule, ProviderProfile } from './profile.ts';
import type { CatalogOffer, Provider } from './provider.ts';

/** Why a provider refuses more capacity, as in `details.reason` and `failureReason`. */
export type Shortage = 'out_of_stock' | 'quota_exceeded';

/** The shortage that a refusal names, if any. The two are kept apart, because a quota says nothing about the stock. */
export function shortageOf(error: unknown): Shortage | undefined {
  if (!(error instanceof ProviderError) || error.problem !== 'conflict') return undefined;
  if (error.code === 'capacity_unavailable') return 'out_of_stock';
  return error.code === 'quota_exceeded' ? 'quota_exceeded' : undefined;
}

/** Whether a provider refused because its platform does not answer now. The same call may succeed later. */
export function isPlatformSilent(error: unknown): boolean {
  return shortageOf(error) === 'out_of_stock' && (error as ProviderError).reason === SILENT;
}

const SILENT: UnavailableReason = 'platform_silent';

/** Whether a provider announces why an offer cannot be deployed. Only Berth does. */
export function announcesUnavailable(offer: Pick<CatalogOffer, 'extras'> | undefined): boolean {
  return unavailableOf(offer) !== undefined;
}

/** Whether an offer that `/availability` omits may be in stock: its platform is silent, or it has become deployable. */
export function mayBeInStock(
  configurations: readonly Configuration[],
  { offerId, region }: { offerId: string; region: string },
): boolean {
  const offer = configurations.find(({ id }) => id === offerId);
  const unavailable = unavailableOf(offer);
  if (unavailable === undefined || offer?.regions.includes(region) !== true) return false;
  const found = unavailable.find((one) => one.region === region);
  return found === undefined || found.reason === SILENT;
}

/** Whether a provider reports how much of its volumes is used. */
export function reportsVolumeUsage({ catalog }: Pick<Provider, 'catalog'>): boolean {
  return [...catalog.offers.values()].some(
    ({ extras }) => berthAnswerSchema.safeParse(extras['berth']).data?.volume_usage === true,
  );
}

function unavailableOf(offer: { extras?: Readonly<Record<string, unknown>> | undefined } | undefined) {
  return berthAnswerSchema.safeParse(offer?.extras?.['berth']).data?.unavailable;
}

/** The properties that a profile's rules match. */
export interface Machine {
  offerId: string;
  instanceType: InstanceType;
}

/** A machine in its region, such as a deployment. */
export type PlacedMachine = Machine & { region: string };

/** The profile and the last announced catalog of a provider. */
type Rules = Pick<Provider, 'profile' | 'catalog'>;

const STOPPED_PRICE_UNKNOWN =
  'The provider does not announce the price of a stopped instance of this machine type, so it cannot be stopped.';
const RESTART_UNANNOUNCED = 'The provider cannot restart instances of this machine type.';

/**
 * M: Deployment, `pauseUnsupportedReason`; null if the machine can be stopped. If the catalog does not have the offer,
 * only the profile counts.
 */
export function pauseUnsupportedReason({ profile, catalog }: Rules, machine: PlacedMachine): string | null {
  const reason = ruleOf(profile, 'no_stop', machine, machine.region);
  const offer = catalog.offers.get(machine.offerId);
  if (reason !== null || offer === undefined) return reason;
  return stoppedPrice(profile, offer, machine.region) === null ? STOPPED_PRICE_UNKNOWN : null;
}

/** Null if the machine can be restarted. If the catalog does not have the offer, only the profile counts. */
export function restartUnsupportedReason({ profile, catalog }: Rules, machine: PlacedMachine): string | null {
  const reason = ruleOf(profile, 'no_restart', machine, machine.region);
  const offer = catalog.offers.get(machine.offerId);
  if (reason !== null || offer === undefined) return reason;
  return offer.announcesRestart ? null : RESTART_UNANNOUNCED;
}

/** M: Offer, `pauseUnsupportedReason`; null if instances can be stopped in at least one of `regions`. */
export function offerPauseUnsupportedReason(
  profile: ProviderProfile,
  offer: Machine & Pick<CatalogOffer, 'stoppedPriceMicroUsdPerHour'>,
  regions: readonly string[],
): string | null {
  const reasons = (regions.length === 0 ? [null] : regions).map(
    (region) =>
      ruleOf(profile, 'no_stop', offer, region) ??
      (stoppedPrice(profile, offer, region) === null ? STOPPED_PRICE_UNKNOWN : null),
  );
  return reasons.includes(null) ? null : (reasons[0] ?? null);
}

/**
 * The announced price while stopped, else the profile's, in micro-USD per hour, before discounts. With `region` null,
 * only a price that applies in every region counts.
 */
export function stoppedPrice(
  profile: ProviderProfile,
  offer: Machine & Pick<CatalogOffer, 'stoppedPriceMicroUsdPerHour'>,
  region: string | null,
): number | null {
  return offer.stoppedPriceMicroUsdPerHour ?? profileStoppedPrice(profile, offer, region);
}

/** The longer of the announced minimum and the profile's; null: neither exists. */
export function minimumReservationMinutes(
  { profile }: Pick<Provider, 'profile'>,
  offer: Machine & Pick<CatalogOffer, 'minimumReservationMinutes'>,
  region: string,
): number | null {
  const own = ruleOf(profile, 'minimum_reservation_minutes', offer, region);
  const known = [offer.minimumReservationMinutes, own].filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** The profile's price in micro-USD per hour, or null. `region` null: only rules that apply in every region. */
export function profileStoppedPrice(
  profile: ProviderProfile,
  machine: Machine,
  region: string | null,
): number | null {
  const usd = ruleOf(profile, 'stopped_price_per_hour', machine, region);
  return usd === null ? null : microUsdFromUsd(usd);
}

/** The time after which a deployment that is not running has failed. If no rule matches, the longest one applies. */
export function deployTimeoutMinutes({ profile }: Pick<Provider, 'profile'>, machine: PlacedMachine): number {
  const all = profile.machines.flatMap((rule) => rule.deploy_timeout_minutes ?? []);
  return ruleOf(profile, 'deploy_timeout_minutes', machine, machine.region) ?? Math.max(...all);
}

/** What the profile says of a machine; null: nothing. `region` null: only rules that apply in every region count. */
export function ruleOf<K extends Exclude<keyof MachineRule, 'instance_types' | 'regions' | 'offers'>>(
  { machines }: ProviderProfile,
  key: K,
  machine: Machine,
  region: string | null,
): NonNullable<MachineRule[K]> | null {
  return machines.find((rule) => rule[key] !== undefined && fits(rule, machine, region))?.[key] ?? null;
}

/** Whether all conditions of the rule match. Without a region, a rule with regions does not match. */
function fits(rule: MachineRule, { offerId, instanceType }: Machine, region: string | null): boolean {
  const { instance_types: types, regions, offers } = rule;
  if (types !== undefined && !types.includes(instanceType)) return false;
  if (offers !== undefined && !offers.includes(offerId)) return false;
  return regions === undefined || (region !== null && regions.includes(region));
}
