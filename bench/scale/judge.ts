import { median } from '../support/paired-rounds.ts';
import type { Figure } from './measure.ts';

/** A figure with n and with 10 n, each from several rounds. */
export interface Judged {
  value: number;
  valueAtTen: number;
  growth: number;
  /** Whether it grew by more than allowed. */
  isTooMuch: boolean;
  /** Null: there is no aim. */
  isAimMet: boolean | null;
}

/**
 * Compares a figure at 10 n with the same figure at n, from one run. For a rate (`atLeast`), a decrease counts as
 * growth.
 */
export function judge(figure: Figure, few: readonly number[], many: readonly number[]): Judged {
  const [value, valueAtTen] = [pick(figure, few), pick(figure, many)];
  const isRate = figure.aim !== undefined && 'atLeast' in figure.aim;
  const growth = isRate ? value / valueAtTen : valueAtTen / value;
  return {
    value,
    valueAtTen,
    growth,
    isTooMuch: figure.mayGrow !== null && !(growth <= figure.mayGrow),
    isAimMet: isMet(figure.aim, valueAtTen),
  };
}

function pick({ of = 'least' }: Figure, values: readonly number[]): number {
  if (of === 'median') return median(values);
  return of === 'least' ? Math.min(...values) : Math.max(...values);
}

function isMet(aim: Figure['aim'], value: number): boolean | null {
  if (aim === undefined) return null;
  return 'atMost' in aim ? value <= aim.atMost : value >= aim.atLeast;
}
