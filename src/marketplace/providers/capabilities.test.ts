import { describe, expect, it } from 'vitest';
import {
  deployTimeoutMinutes,
  minimumReservationMinutes,
  offerPauseUnsupportedReason,
  pauseUnsupportedReason,
  restartUnsupportedReason,
  stoppedPrice,
} from './capabilities.ts';
import { noMarkups } from './markup.ts';
import { configurationOf, gpuTypes, profileOf } from './offer.fixture.ts';
import { type ProviderProfile, providerProfileSchema } from './profile.ts';
import type { CatalogOffer, ProviderCatalog } from './provider.ts';
import { toCatalogOffer } from './to-catalog-offer.ts';

const exceptions = [
  { instance_types: ['SPOT'], ...not('No spot instances.') },
  { regions: ['ap-three'], ...not('Not in ap-three.') },
  { offers: ['h100-1x'], regions: ['us-two'], ...not('Not this machine in us-two.') },
];

function not(reason: string): { no_stop: string; no_restart: string } {
  return { no_stop: reason, no_restart: reason };
}

function offerOf(profile: ProviderProfile, changes = {}): CatalogOffer {
  const context = { profile, gpuTypes, markups: noMarkups, inStockRegions: [], onProblem: () => undefined };
  const offer = toCatalogOffer(configurationOf(changes), context);
  if (offer === null) throw new Error('the offer is left out');
  return offer;
}

function rulesOf(profile: ProviderProfile, ...offers: CatalogOffer[]) {
  const catalog: ProviderCatalog = {
    refreshedAt: 1,
    volumeLocations: [],
    offers: new Map(offers.map((offer) => [offer.offerId, offer])),
  };
  return { profile, catalog };
}

const machine = { offerId: 'h100-1x', instanceType: 'DEDICATED', region: 'eu-one' } as const;

describe('a deployment', () => {
  const profile = profileOf(exceptions);
  const rules = rulesOf(profile, offerOf(profile));

  it.each([
    [machine, null],
    [{ ...machine, instanceType: 'SPOT' as const }, 'No spot instances.'],
    [{ ...machine, region: 'ap-three' }, 'Not in ap-three.'],
    [{ ...machine, region: 'us-two' }, 'Not this machine in us-two.'],
    [{ ...machine, offerId: 'other', region: 'us-two' }, null],
  ])('as %j can be stopped and restarted unless: %s [deployment-stoppable]', (placed, reason) => {
    expect(pauseUnsupportedReason(rules, placed)).toBe(reason);
    expect(restartUnsupportedReason(rules, placed)).toBe(reason);
  });

  it('cannot be stopped or restarted where its provider never can', () => {
    const never = profileOf([{ no_stop: 'It cannot stop.', no_restart: 'It cannot restart.' }]);
    expect(pauseUnsupportedReason(rulesOf(never, offerOf(never)), machine)).toBe('It cannot stop.');
    expect(restartUnsupportedReason(rulesOf(never, offerOf(never)), machine)).toBe('It cannot restart.');
  });

  it('cannot be stopped or restarted where its provider does not announce it, or announces it unreadably', () => {
    for (const extras of [undefined, { berth: { restart: 'yes', stopped_price_per_hour: -1 } }]) {
      const silent = rulesOf(profile, offerOf(profile, { extras }));
      expect(pauseUnsupportedReason(silent, machine)).toContain(
        'does not announce the price of a stopped instance',
      );
      expect(restartUnsupportedReason(silent, machine)).toContain('cannot restart');
    }
  });

  it('can be stopped by a provider with the contract alone whose profile names the price, also 0', () => {
    for (const price of [0.07, 0]) {
      const named = profileOf([...exceptions, { regions: ['eu-one'], stopped_price_per_hour: price }]);
      const silent = rulesOf(named, offerOf(named, { extras: undefined }));
      expect(pauseUnsupportedReason(silent, machine)).toBeNull();
      expect(pauseUnsupportedReason(silent, { ...machine, region: 'eu-two' })).toContain(
        'does not announce the price',
      );
    }
  });

  it('uses the profile alone while its provider has not listed the offer', () => {
    expect(pauseUnsupportedReason(rulesOf(profile), machine)).toBeNull();
    expect(restartUnsupportedReason(rulesOf(profile), machine)).toBeNull();
  });
});

describe('an offer', () => {
  const profile = profileOf(exceptions);

  it('can be stopped where one of its regions allows it [offer-stoppable-region]', () => {
    const offer = offerOf(profile);
    expect(offerPauseUnsupportedReason(profile, offer, ['us-two', 'eu-one'])).toBeNull();
    expect(offerPauseUnsupportedReason(profile, offer, ['us-two', 'ap-three'])).toBe(
      'Not this machine in us-two.',
    );
    expect(offerPauseUnsupportedReason(profile, offer, [])).toBeNull();
  });

  it('cannot be stopped without a price', () => {
    const offer = offerOf(profile, { extras: {} });
    expect(offerPauseUnsupportedReason(profile, offer, ['eu-one'])).toContain('does not announce the price');
  });

  it('can be stopped with a price that the profile names for one of its regions', () => {
    const named = profileOf([...exceptions, { regions: ['eu-one'], stopped_price_per_hour: 0.07 }]);
    const offer = offerOf(named, { extras: {} });
    expect(offerPauseUnsupportedReason(named, offer, ['eu-two', 'eu-one'])).toBeNull();
    expect(offerPauseUnsupportedReason(named, offer, ['eu-two'])).toContain('does not announce the price');
  });

  it('costs the announced price while it is stopped, else the first matching price of the profile', () => {
    const named = profileOf([
      { instance_types: ['SPOT'], stopped_price_per_hour: 0 },
      { stopped_price_per_hour: 0.07 },
    ]);
    expect(stoppedPrice(named, offerOf(named), 'eu-one')).toBe(500_000);
    expect(stoppedPrice(named, offerOf(named, { extras: {} }), 'eu-one')).toBe(70_000);
    const spot = { extras: {}, instance_type: 'SPOT', spot_price_per_hour: 1 };
    expect(stoppedPrice(named, offerOf(named, spot), null)).toBe(0);
  });
});

describe('minutes', () => {
  const profile = providerProfileSchema.parse({
    ...profileOf(),
    machines: [
      { instance_types: ['BARE_METAL'], minimum_reservation_minutes: 1440, deploy_timeout_minutes: 60 },
      { regions: ['us-two'], minimum_reservation_minutes: 120 },
      { regions: ['eu-one'], deploy_timeout_minutes: 15 },
    ],
  });
  const announced = { extras: { berth: { minimum_reservation_minutes: 90 } } };

  it.each([
    [{}, 'eu-one', null],
    [{}, 'us-two', 120],
    [announced, 'eu-one', 90],
    [announced, 'us-two', 120],
    [{ ...announced, instance_type: 'BARE_METAL' }, 'us-two', 1440],
  ])('of a reservation for %j in %s: %s [reservation-minutes]', (changes, region, minutes) => {
    expect(minimumReservationMinutes({ profile }, offerOf(profile, changes), region)).toBe(minutes);
  });

  it('of a reservation are those of the first rule that matches, also if a later one is longer', () => {
    const rules = [
      { regions: ['us-two'], minimum_reservation_minutes: 10 },
      { minimum_reservation_minutes: 60 },
    ];
    const first = profileOf(rules);
    const minutesIn = (region: string) =>
      minimumReservationMinutes({ profile: first }, offerOf(first), region);
    expect([minutesIn('us-two'), minutesIn('eu-one')]).toEqual([10, 60]);
  });

  it.each([
    ['BARE_METAL', 'eu-one', 60],
    ['DEDICATED', 'eu-one', 15],
    ['DEDICATED', 'us-two', 60],
  ] as const)('until a deployment of %s in %s has failed: %i', (instanceType, region, minutes) => {
    expect(deployTimeoutMinutes({ profile }, { ...machine, instanceType, region })).toBe(minutes);
  });
});
