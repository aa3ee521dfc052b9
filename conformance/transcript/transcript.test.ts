import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { referenceParts, runCli, temporaryFolder } from '../cli/cli.fixture.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { toReport } from '../report/model.ts';
import { judge } from '../verdict/judge.ts';
import { linked, unlinked, withoutChain } from './chain.fixture.ts';
import { readTranscript, TranscriptError } from './transcript.ts';

async function makeTranscript(): Promise<string> {
  using folder = temporaryFolder();
  await using target = referenceParts();
  const args = [target.baseUrl, '--level', 'full', '--max-cost', '1000', '--state-dir', folder.path];
  await runCli([...args, '--transcript', folder.file('t')], { parts: target.parts });
  return readFileSync(folder.file('t'), 'utf8');
}

const chained = await makeTranscript();
/** What becomes of broken records is seen where no link shows that they are. */
const text = withoutChain(chained);
const lines = text.trimEnd().split('\n');
const requirements = loadRequirements();

describe('a transcript', () => {
  it('reads as it was written', () => {
    expect(readTranscript(chained)).toEqual(unlinked(chained));
    expect(readTranscript(text)).toEqual(unlinked(text));
    expect(linked(unlinked(chained))).toBe(chained);
  });

  it.each<[string, (lines: string[]) => string[]]>([
    ['a changed line', (lines) => lines.with(3, lines[3]?.replace(/"sentAt":\d/, '"sentAt":9') ?? '')],
    ['a line less', (lines) => lines.toSpliced(3, 1)],
    ['a line twice', (lines) => lines.toSpliced(3, 0, lines[3] ?? '')],
    ['two lines exchanged', (lines) => lines.toSpliced(3, 2, lines[4] ?? '', lines[3] ?? '')],
    ['a line without its link', (lines) => lines.with(3, lines[3]?.replace(/,"link":"\w+"/, '') ?? '')],
    ['a link of another run', (lines) => lines.with(3, lines[3]?.replace(/"link":"../, '"link":"zz') ?? '')],
    ['a changed run', (lines) => lines.with(0, lines[0]?.replace('"full"', '"lifecycle"') ?? '')],
  ])('is refused with %s', (_what, change) => {
    const changed = change(chained.trimEnd().split('\n')).join('\n');
    expect(changed).not.toBe(chained.trimEnd());
    expect(() => readTranscript(`${changed}\n`)).toThrow('its link does not follow from the lines before');
  });

  it('may end anywhere, as after a crash', () => {
    for (const end of [1, 100, 5000].map((bytes) => text.length - bytes)) {
      const records = readTranscript(text.slice(0, end));
      expect(toReport(records, judge(records, requirements.rows, CHECKS), requirements).outcome).not.toBe(
        'CONFORMANT',
      );
    }
  });

  it.each([
    ['is empty', '', 'it is empty'],
    ['does not begin with its run', lines[1], 'line 1 is not the `run` record'],
    [
      'is of another format',
      lines[0]?.replace('"format":1', '"format":2'),
      'line 1 is not a record of a transcript (format:',
    ],
    [
      'has a path that would be a part of the host',
      `${lines[0]}\n${lines.find((line) => line.includes('"kind":"exchange"'))?.replace('"path":"/', '"path":"999é/')}\n`,
      'line 2 is not a record of a transcript (request.path:',
    ],
    ['is two', `${text}${text}`, 'begins another run'],
    ['goes on after its end', `${text}${lines[1]}\n`, 'comes after the `end` record'],
    [
      'has a line that is none',
      `${lines[0]}\n{}\n${lines[1]}\n`,
      'line 2 is not a record of a transcript (kind:',
    ],
    [
      'has a line that is not JSON',
      `${lines[0]}\nx\n${lines[1]}\n`,
      'line 2 is not a record of a transcript (it is not JSON)',
    ],
    ['is cut off in its first line', lines[0]?.slice(0, 50), 'line 1 is not a record'],
  ])('is refused where it %s', (_what, broken, message) => {
    expect(() => readTranscript(broken ?? '')).toThrow(message);
    expect(() => readTranscript(broken ?? '')).toThrow(TranscriptError);
  });

  it('that someone has been at is refused, or judged without a crash', () => {
    const odd = fc.constantFrom<unknown>(
      '',
      'x',
      '\u0000',
      0,
      -1,
      1e300,
      null,
      [],
      {},
      true,
      'NaN',
      '9'.repeat(400),
    );
    fc.assert(
      fc.property(fc.nat(lines.length - 1), fc.nat(), odd, (at, where, value) => {
        const changed = lines.with(at, change(lines[at] ?? '', where, value));
        const records = read(changed.join('\n'));
        if (records === undefined) return;
        toReport(records, judge(records, requirements.rows, CHECKS), requirements);
      }),
      { numRuns: 25 },
    );
  });

  it('whose lines are in disorder, missing or there twice is judged without a crash', () => {
    const middle = lines.slice(1, -1);
    fc.assert(
      fc.property(fc.shuffledSubarray(middle), fc.subarray(middle), (some, more) => {
        const records = readTranscript([lines[0], ...some, ...more.slice(0, 20)].join('\n'));
        toReport(records, judge(records, requirements.rows, CHECKS), requirements);
      }),
      { numRuns: 6 },
    );
  });
});

function read(changed: string): ReturnType<typeof readTranscript> | undefined {
  try {
    return readTranscript(`${changed}\n`);
  } catch (error) {
    if (error instanceof TranscriptError) return undefined;
    throw error;
  }
}

/** Replaces the value at `where` in a line by `value`. Values within the answer's body count too. */
function change(line: string, where: number, value: unknown): string {
  const record: { answer?: { body?: string } } = JSON.parse(line);
  const body: unknown = record.answer?.body?.startsWith('{') ? JSON.parse(record.answer.body) : undefined;
  const inBody = placesOf(body);
  const [of, key = ''] =
    [...placesOf(record), ...inBody][where % (placesOf(record).length + inBody.length)] ?? [];
  if (of !== undefined) of[key] = value;
  if (record.answer !== undefined && inBody.some(([node]) => node === of))
    record.answer.body = JSON.stringify(body);
  return JSON.stringify(record);
}

function placesOf(node: unknown): [of: Record<string, unknown>, key: string][] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, inner]) => [
    [node as Record<string, unknown>, key],
    ...placesOf(inner),
  ]);
}
