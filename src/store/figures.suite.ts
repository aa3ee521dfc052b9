import { describe, expect, it } from 'vitest';
import { collectLog } from '../../test/support/doubles/log.ts';
import { FigureRecorder, type FigureSource, type HourOfFigures } from '../operator-kit/figures/recorder.ts';
import type { FigureReader, FigureRow, FigureWriter } from '../operator-kit/model.ts';

interface StoreOfFigures {
  read: { figures: FigureReader };
  transact<T>(body: (tx: { figures: FigureWriter }) => Promise<T>): Promise<T>;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Clocks of Europe go forward one hour in this night. */
const night = Date.UTC(2026, 2, 29);

/** No database takes it: it has no subject. */
const unwritable = { how: 'add', series: 'bad', subject: null as never, rows: [['a', 1]] } as const;

/** Tests of the figures over time and of their recorder, for the database of either product. */
export function describeFigures(storeOf: () => StoreOfFigures): void {
  const list = (step: 'hour' | 'day' | 'sample', series: string, subject?: string) =>
    storeOf().read.figures.list({ step, series, subject, from: 0, until: Number.MAX_SAFE_INTEGER });
  const rowsOf = async (step: 'hour' | 'day', series: string) =>
    (await list(step, series)).map(({ at, rows }) => [(at - night) / HOUR, ...rows]);

  /** A server whose state, rows and own counts a test sets. */
  const startServer = (given: Partial<FigureSource> = {}) => {
    const clock = { at: night, now: () => clock.at };
    const { log, lines } = collectLog();
    const source: FigureSource = {
      hoursToRecount: 1,
      sample: async (at) => [
        {
          how: 'sample',
          series: 'units',
          subject: 'p',
          at,
          rows: [
            ['', 1],
            ['a', 4],
          ],
        },
      ],
      count: async () => [],
      ...given,
    };
    const recorder = new FigureRecorder({
      store: { transact: (body) => storeOf().transact(body) },
      clock,
      log,
      source,
    });
    const runAt = async (at: number) => {
      clock.at = at;
      await recorder.run();
    };
    return { runAt, recorder, lines, clock };
  };

  describe('figures over time', () => {
    it('are read by period, series and subject, the oldest first, and overwritten', async () => {
      const put = (at: number, series: string, subject: string, rows: FigureRow[]) =>
        storeOf().transact((tx) => tx.figures.put({ step: 'hour', at, series, subject, rows }));
      await put(night + HOUR, 'calls', 'west', [['get', 1]]);
      await put(night, 'calls', 'west', [['get', 2]]);
      await put(night, 'calls', 'east', [['get', 3]]);
      await put(night, 'units', 'east', [['a', 9]]);
      await put(night, 'calls', 'east', [['get', 4]]);
      expect((await list('hour', 'calls')).map(({ subject, rows }) => [subject, rows[0]?.[1]])).toEqual([
        ['east', 4],
        ['west', 2],
        ['west', 1],
      ]);
      expect(await list('hour', 'calls', 'east')).toHaveLength(1);
      const { figures } = storeOf().read;
      const until = night + HOUR;
      expect(await figures.list({ step: 'hour', series: 'calls', from: night, until })).toHaveLength(2);
      expect(await list('day', 'calls')).toEqual([]);
    });

    it('are pruned from the oldest on, at most so many at once', async () => {
      await storeOf().transact(async ({ figures }) => {
        for (const hour of [0, 1, 2, 3])
          await figures.put({ step: 'hour', at: night + hour * HOUR, series: 's', subject: '', rows: [] });
        await figures.put({ step: 'day', at: night, series: 's', subject: '', rows: [] });
        await figures.prune('hour', night + 3 * HOUR, 2);
      });
      expect(await rowsOf('hour', 's')).toEqual([[2], [3]]);
      expect(await rowsOf('day', 's')).toEqual([[0]]);
    });
  });

  describe('the recorder of figures', () => {
    it('samples every five minutes, and once however many servers run', async () => {
      const [one, other] = [startServer(), startServer()];
      for (let minute = 0; minute < 60; minute++)
        await Promise.all([one.runAt(night + minute * MINUTE), other.runAt(night + minute * MINUTE + 7_000)]);
      expect(await rowsOf('hour', 'units')).toEqual([[0, ['', 12], ['a', 48]]]);
      expect([...one.lines, ...other.lines]).toEqual([]);
    });

    it('does not sample a time twice when the clock was set back, nor after a restart', async () => {
      const first = startServer();
      for (const minute of [0, 5, 10, 4, 6, 11]) await first.runAt(night + minute * MINUTE);
      await startServer().runAt(night + 12 * MINUTE);
      expect(await rowsOf('hour', 'units')).toEqual([[0, ['', 3], ['a', 12]]]);
      // It was an hour ahead by mistake: the hour is sampled as usual when it comes.
      await first.runAt(night + 70 * MINUTE);
      await first.runAt(night + 15 * MINUTE);
      expect((await list('hour', 'units')).map(({ rows }) => rows[0])).toEqual([
        ['', 4],
        ['', 1],
      ]);
    });

    it('adds up the hours of a UTC day, in which 24 hours are 24 hours all year', async () => {
      const server = startServer();
      for (let hour = 0; hour < 25; hour++) await server.runAt(night + hour * HOUR);
      expect(await list('hour', 'units')).toHaveLength(25);
      expect(await rowsOf('day', 'units')).toEqual([
        [0, ['', 24], ['a', 96]],
        [24, ['', 1], ['a', 4]],
      ]);
    });

    it('replaces what is counted from rows, and adds what only a process knows', async () => {
      let counted = 1;
      const hourOf = (how: HourOfFigures['how'], series: string, row: FigureRow) =>
        ({ how, series, subject: 'p', at: night, rows: [row] }) as const;
      const serverWith = (calls: number) =>
        startServer({
          sample: async () => [],
          count: async () => [hourOf('replace', 'outcomes', ['online', counted])],
          take: () => [hourOf('add', 'calls', ['get', calls])],
        });
      const [one, other] = [serverWith(2), serverWith(40)];
      await Promise.all([one.runAt(night), other.runAt(night)]);
      expect(await rowsOf('hour', 'calls')).toEqual([[0, ['get', 42]]]);
      expect(await rowsOf('hour', 'outcomes')).toEqual([[0, ['online', 1]]]);
      counted = 3;
      await one.runAt(night + 5 * MINUTE);
      await other.recorder.stop();
      expect(await rowsOf('day', 'calls')).toEqual([[0, ['get', 84]]]);
      expect(await rowsOf('day', 'outcomes')).toEqual([[0, ['online', 3]]]);
    });

    it('gives back what it could not write, and records the same time again', async () => {
      const kept: HourOfFigures[] = [
        { how: 'add', series: 'calls', subject: 'p', at: night, rows: [['get', 5]] },
      ];
      let isBroken = true;
      const server = startServer({
        take: () => [...kept.splice(0), ...(isBroken ? [{ ...unwritable, at: night }] : [])],
        putBack: (taken) => void kept.push(...taken.filter(({ series }) => series === 'calls')),
      });
      await server.runAt(night);
      expect(server.lines.map(({ level }) => level)).toEqual(['warn']);
      expect(await rowsOf('hour', 'units')).toEqual([]);
      isBroken = false;
      await server.runAt(night + 10_000);
      expect(await rowsOf('hour', 'units')).toEqual([[0, ['', 1], ['a', 4]]]);
      expect(await rowsOf('hour', 'calls')).toEqual([[0, ['get', 5]]]);
    });

    it('counts two days again after a start, and then the hours that its source asks for', async () => {
      const from: number[] = [];
      const server = startServer({
        hoursToRecount: 6,
        count: async (since, hour) => {
          from.push((hour - since) / HOUR);
          return [];
        },
      });
      for (const minute of [0, 5, 10, 60, 65]) await server.runAt(night + minute * MINUTE);
      expect(from).toEqual([48, 1, 1, 6, 1]);
    });

    it('leaves a gap for the time in which no server ran, and drops what is old', async () => {
      const server = startServer();
      for (const day of [0, 3, 101, 402]) await server.runAt(night + day * DAY);
      expect((await list('hour', 'units')).map(({ at }) => (at - night) / DAY)).toEqual([402]);
      expect((await list('day', 'units')).map(({ at }) => (at - night) / DAY)).toEqual([3, 101, 402]);
      expect(await list('sample', 'units')).toHaveLength(1);
    });

    it('drops the marks of samples as fast as many platforms write them', async () => {
      const old = { step: 'sample', series: 'units', rows: [], at: night } as const;
      await storeOf().transact(async ({ figures }) => {
        for (let subject = 0; subject < 600; subject++) await figures.put({ ...old, subject: `${subject}` });
      });
      const server = startServer();
      for (const minute of [0, 5]) await server.runAt(night + 2 * DAY + minute * MINUTE);
      expect(await list('sample', 'units')).toHaveLength(2);
    });
  });
}
