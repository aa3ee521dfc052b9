import { describe, expect, it } from 'vitest';
import { digestOf, REDACTED } from '../certificate/digest.ts';
import { fromBundle, toBundle } from './bundle.ts';
import { parseEntry, toEntry } from './entry.ts';
import { signedReport } from './log.fixture.ts';

const report = signedReport(1);
const entry = toEntry(report);
const edited = (change: (text: string) => string): Buffer => Buffer.from(change(entry.bytes.toString()));

describe('an entry', () => {
  it('shows what was certified, and hides the rest behind its digest', () => {
    const shown = JSON.parse(entry.bytes.toString());
    const { outcome, base_url, level, signature } = report;
    expect(shown).toMatchObject({ outcome, base_url, level, signature });
    expect(shown.exchanges).toEqual({ [REDACTED]: digestOf(report.exchanges) });
    expect(shown.cost_usd).toEqual({ [REDACTED]: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(Object.keys(shown)).toEqual(Object.keys(report).toSorted());
  });

  it('shows which challenge the report answers', () => {
    const challenge_sha256 = 'c1'.repeat(32);
    const { bytes, report: shown } = toEntry(signedReport(1, { challenge_sha256 }));
    expect(shown.challenge_sha256).toBe(challenge_sha256);
    const hidden = bytes
      .toString()
      .replace(`"${challenge_sha256}"`, `{"${REDACTED}":"${digestOf(challenge_sha256)}"}`);
    expect(() => parseEntry(Buffer.from(hidden))).toThrow(/challenge_sha256 is not as/);
  });

  it('is proved by the signature of the report alone', () => {
    expect(parseEntry(entry.bytes)).toEqual(entry);
    expect(entry.digest).toBe(digestOf(report));
  });

  it('of a report without its name is about the same report', () => {
    const redacted = { ...report, base_url: { [REDACTED]: digestOf(report.base_url) } as never };
    const nameless = toEntry(redacted);
    expect(nameless.digest).toBe(entry.digest);
    expect(nameless.bytes.toString()).not.toContain(report.base_url);
  });

  it('of a report that is not signed, or was changed, is refused', () => {
    const { signature: _, ...unsigned } = report;
    expect(() => toEntry(unsigned)).toThrow('it is not signed');
    expect(() => toEntry({ ...report, outcome: 'INCOMPLETE' })).toThrow('not what was signed');
  });

  it('may not be larger than tlog-tiles can count', () => {
    const large = signedReport(1, { base_url: `https://x.example/${'x'.repeat(65_000)}` });
    expect(() => toEntry(large)).toThrow('65535 is the most');
  });

  const outcome = report.outcome;
  it.each([
    ['another outcome', /not what was signed/, (text: string) => text.replace(outcome, 'INCOMPLETE')],
    ['another target', /not what was signed/, (text: string) => text.replace('north', 'south')],
    ['a space', /canonical/, (text: string) => text.replace(':', ': ')],
    ['an escape', /canonical/, (text: string) => text.replace('"level"', '"leve\\u006c"')],
    ['two fields of one name', /canonical/, (text: string) => text.replace('{', '{"base_url":"x",')],
    [
      'a hidden outcome',
      /outcome is not as/,
      (text: string) => text.replace(`"${outcome}"`, `{"${REDACTED}":"${digestOf(outcome)}"}`),
    ],
    [
      'free text for a digest',
      /cost_usd is not as/,
      (text: string) => text.replace(/("cost_usd":\{"\$redacted":")[^"]*/, '$1call 555-0100'),
    ],
    [
      'a part of the counts hidden',
      /counts\/pass was taken out/,
      (text: string) =>
        text.replace(/"pass":\d+/, `"pass":{"${REDACTED}":"${digestOf(report.counts.pass)}"}`),
    ],
    ['a field more', /zzz is not as/, (text: string) => text.replace(/\}$/, ',"zzz":1}')],
    ['an outcome that is none', /outcome is not as/, (text: string) => text.replace(outcome, 'GOOD')],
    ['no JSON', /canonical/, () => 'hello'],
  ])('with %s is refused', (_what, why, change) => {
    expect(() => parseEntry(edited(change))).toThrow(why);
  });
});

describe('a bundle', () => {
  const entries = [Buffer.alloc(0), Buffer.from('a'), Buffer.alloc(65_535, 7)];

  it('has the entries that were put into it', () => {
    expect(fromBundle(toBundle(entries), 3)).toEqual(entries);
    expect(fromBundle(toBundle(entries), 2)).toEqual(entries.slice(0, 2));
    expect(toBundle([Buffer.from('ab')]).toString('hex')).toBe('00026162');
  });

  it('that is cut short is refused', () => {
    const bundle = toBundle(entries);
    for (const most of [1, 2, 4, bundle.length - 1])
      expect(() => fromBundle(bundle.subarray(0, most), 3)).toThrow('cut short');
    expect(() => fromBundle(bundle, 4)).toThrow('cut short');
  });
});
