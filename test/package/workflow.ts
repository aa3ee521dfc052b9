import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** A step of a job of GitHub Actions. */
export interface Step {
  name?: string;
  if?: string;
  /** An action, such as `actions/setup-node@v4`, and what it is given. */
  uses?: string;
  with?: Record<string, unknown>;
  /** What bash runs. */
  run?: string;
}

export interface Job {
  env: Record<string, string>;
  steps: Step[];
}

/** The one job of a workflow file. */
export function readJob(file: string): Job {
  const { jobs } = parse(readFileSync(file, 'utf8')) as { jobs: Record<string, Job> };
  const [job, ...others] = Object.values(jobs);
  if (job === undefined || others.length > 0) throw new Error(`${file} has not one job`);
  return job;
}
