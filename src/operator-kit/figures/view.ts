import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import type { Clock } from '../../ports/clock.ts';
import type { FigureReader } from '../model.ts';
import { defineView, onlyPrinted, type TextPart } from '../operation.ts';
import { toTime } from '../views/values.ts';
import {
  type Figure,
  type FigureFilter,
  type FigureSpec,
  figureRanges,
  rangeNames,
  readFigure,
  toCsv,
} from './figure.ts';

const valuesSchema = z
  .record(z.string(), z.number())
  .nullable()
  .meta({ description: 'By column. Null: no server recorded it.' });

const figureSchema = z
  .object({
    figure: z.string(),
    title: z.string(),
    unit: z.string(),
    step: z.enum(['hour', 'day']).meta({ description: 'The length of a point, in UTC.' }),
    from: timestampSchema,
    until: timestampSchema,
    columns: z.array(z.string()),
    points: z
      .array(z.object({ at: timestampSchema, values: valuesSchema }))
      .meta({ description: 'The oldest first. The last one is not complete yet.' }),
    whole: valuesSchema.meta({ description: 'The same for the whole period; null: nothing was recorded.' }),
  })
  .meta({ id: 'Figure' });
type FigureView = z.infer<typeof figureSchema>;

export interface FigureDeps {
  store: { read: { figures: FigureReader } };
  clock: Pick<Clock, 'now'>;
}

/** The filters of a product's figures: what each leaves. */
type Filters = Readonly<Record<string, string>>;
type FilterValues = Readonly<Record<string, unknown>>;

interface Figures<Deps> {
  specs: readonly FigureSpec[];
  filters: Filters;
  toFilter(given: FilterValues): FigureFilter;
  /** Default: the stored figures. */
  readerOf?(deps: Deps, given: FilterValues): Pick<FigureReader, 'list'>;
}

/** Declares a product's view of its figures over time. */
export function figuresViewOf<Deps extends FigureDeps>({
  specs,
  filters,
  toFilter,
  readerOf,
}: Figures<Deps>) {
  const [first] = specs;
  const names = specs.map(({ name }) => name);
  const optional = Object.entries(filters).map(([name, description]) => [
    name,
    z
      .string()
      .max(200)
      .optional()
      .meta({ description: `Only ${description}.` }),
  ]);
  return defineView({
    name: 'getFigures',
    tag: 'Views',
    path: '/figures',
    summary: 'A figure over time',
    description: `By hour for 24 hours and 7 days, by UTC day for 90 days. \`Accept: text/csv\` returns the points as CSV.\n\n${specs.map(({ name, title, unit, about }) => `- \`${name}\` (${unit}): ${title}. ${about}`).join('\n')}`,
    input: {
      figure: z.enum(names).default(first?.name ?? ''),
      range: z.enum(rangeNames).default('7d'),
      ...(Object.fromEntries(optional) as Record<string, z.ZodType<string | undefined>>),
      csv: onlyPrinted(z.boolean().optional()),
    },
    reply: ['The figure.', figureSchema],
    toCsv: (reply: FigureView) => csvOf(reply),
    commands: [
      {
        name: 'figures',
        args: { figure: ['[figure]', `what to show; without it: ${first?.name}`] },
        flags: {
          range: ['--range <period>', 'the last 24 hours, 7 days or 90 days; default: 7d'],
          ...Object.fromEntries(
            Object.entries(filters).map(([name, description]) => [
              name,
              [`--${name} <${name}>`, `only ${description}`] as const,
            ]),
          ),
          csv: ['--csv', 'print CSV'],
        },
        // A line break within a text would be shown as an escape.
        toText: (reply, { csv }) => (csv === true ? csvOf(reply).trimEnd().split('\n') : toText(reply)),
      },
    ],
    read: async (deps: Deps, { figure = first?.name, range = '7d', csv: _csv, ...given }) => {
      const spec = specs.find(({ name }) => name === figure) as FigureSpec;
      const reader = readerOf?.(deps, given) ?? deps.store.read.figures;
      const now = deps.clock.now();
      return toView(await readFigure(reader, spec, { range, now, filter: toFilter(given) }));
    },
  });
}

function toView({ spec, range, from, until, columns, points, whole }: Figure): FigureView {
  return {
    figure: spec.name,
    title: spec.title,
    unit: spec.unit,
    step: figureRanges[range].step,
    from: toTime(from),
    until: toTime(until),
    columns: [...columns],
    points: points.map(({ at, values }) => ({ at: toTime(at), values })),
    whole,
  };
}

function csvOf({ columns, points }: FigureView): string {
  return toCsv({ columns, points: points.map(({ at, values }) => ({ at: Date.parse(at), values })) });
}

function toText({ title, unit, columns, points, whole }: FigureView): TextPart[] {
  const cellsOf = (values: FigureView['whole']) =>
    Object.fromEntries(columns.map((column) => [column, values?.[column] ?? null]));
  return [
    `${title}, ${unit}.`,
    [
      ...points.map(({ at, values }) => ({ at: `${at.slice(0, 16)}Z`, ...cellsOf(values) })),
      { at: 'whole', ...cellsOf(whole) },
    ],
  ];
}
