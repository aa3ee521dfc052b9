import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aClaim, aHost } from './room.fixture.ts';
import { type Claim, settleClaim } from './room.ts';

const open = (ref: string, overrides: Partial<Claim> = {}): Claim =>
  aClaim({ ref, state: 'open', vcpus: 10, ...overrides });
const verdictFor = (ref: string, ...claims: Claim[]): string => settleClaim(aHost({ claims }), ref).verdict;

describe('a claim that was just defined', () => {
  it('is held if all claims fit', () => {
    expect(verdictFor('berth-b', open('berth-b'), aClaim({ vcpus: 6 }))).toBe('held');
  });

  it('is lost to a held one, regardless of the ref', () => {
    expect(
      settleClaim(aHost({ claims: [open('berth-a'), aClaim({ ref: 'berth-z', vcpus: 7 })] }), 'berth-a'),
    ).toEqual({
      verdict: 'lost',
      reason: 'the host is short of 1 vCPUs',
    });
  });

  it('is lost to an earlier open one, which waits for it', () => {
    expect(verdictFor('berth-a', open('berth-b'), open('berth-a'))).toBe('wait');
    expect(verdictFor('berth-b', open('berth-b'), open('berth-a'))).toBe('lost');
  });

  it('is not lost to one that is itself lost', () => {
    const claims = [aClaim({ ref: 'berth-z', vcpus: 8 }), open('berth-a'), open('berth-b', { vcpus: 6 })];
    expect(verdictFor('berth-a', ...claims)).toBe('lost');
    expect(verdictFor('berth-b', ...claims)).toBe('wait');
  });

  it('is lost if another domain has its GPU, even a stopped foreign one', () => {
    const gpu = { pciFunctions: ['0000:18:00.0'] };
    const other = aClaim({ ref: undefined, state: 'released', ...gpu });
    expect(settleClaim(aHost({ claims: [open('berth-a', gpu), other] }), 'berth-a')).toEqual({
      verdict: 'lost',
      reason: 'another domain has 0000:18:00.0 as well',
      gpu: '0000:18:00.0',
    });
  });

  it('is not affected if two others have the same GPU', () => {
    const gpu = { state: 'released' as const, pciFunctions: ['0000:18:00.0'] };
    expect(verdictFor('berth-a', open('berth-a'), aClaim({ ref: undefined, ...gpu }), aClaim(gpu))).toBe(
      'held',
    );
  });

  it('is lost when its domain is gone', () => {
    expect(verdictFor('berth-a')).toBe('lost');
  });
});

/** A host shared by several processes. Each define, list and undefine is one step, in any order. */
class SharedHost {
  claims: Claim[] = [];
  /** Whether held claims ever exceeded the host's resources. */
  overfilled = false;
  define = async (claim: Claim): Promise<void> => {
    this.claims = [...this.claims.filter(({ ref }) => ref !== claim.ref), claim];
    const held = this.claims.filter(({ state }) => state === 'held');
    const gpus = held.flatMap(({ pciFunctions }) => pciFunctions);
    this.overfilled ||=
      held.reduce((sum, { vcpus }) => sum + vcpus, 0) > 16 || new Set(gpus).size < gpus.length;
  };
  list = async (): Promise<Claim[]> => this.claims;
  undefine = async (ref: string): Promise<void> => {
    this.claims = this.claims.filter((claim) => claim.ref !== ref);
  };
}

/** Runs one create as the driver does. */
async function create(host: SharedHost, claim: Claim): Promise<'held' | 'lost'> {
  const ref = claim.ref ?? '';
  await host.define(claim);
  for (;;) {
    const { verdict } = settleClaim(aHost({ claims: await host.list() }), ref);
    if (verdict === 'wait') continue;
    if (verdict === 'held') await host.define({ ...claim, state: 'held' });
    else await host.undefine(ref);
    return verdict;
  }
}

const size = fc.record({
  vcpus: fc.integer({ min: 1, max: 16 }),
  gpu: fc.option(fc.integer({ min: 0, max: 1 })),
});
const toClaim = ({ vcpus, gpu }: { vcpus: number; gpu: number | null }, at: number): Claim =>
  open(`berth-${at}`, {
    vcpus,
    memoryMb: 0,
    diskGb: 0,
    pciFunctions: gpu === null ? [] : [`0000:1${gpu}:00.0`],
  });

it('however creates interleave, no host is overcommitted, no GPU is assigned twice, and one create gets the room [libvirt-claims-interleaved]', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(size, { minLength: 2, maxLength: 4 }),
      async (scheduler, sizes) => {
        const host = new SharedHost();
        const stepped = Object.assign(new SharedHost(), {
          define: (claim: Claim) => scheduler.schedule(Promise.resolve()).then(() => host.define(claim)),
          list: () => scheduler.schedule(Promise.resolve()).then(host.list),
          undefine: (ref: string) => scheduler.schedule(Promise.resolve()).then(() => host.undefine(ref)),
        });
        const creates = sizes.map((one, at) => create(stepped, toClaim(one, at)));
        const outcomes = await scheduler.waitFor(Promise.all(creates));
        expect(host.overfilled).toBe(false);
        expect(outcomes).toContain('held');
        expect(host.claims.length).toBe(outcomes.filter((outcome) => outcome === 'held').length);
      },
    ),
    { numRuns: 300 },
  );
});
