import type { Report } from './report.ts';

/**
 * What the signature of a report proves, as one sentence without its full stop. `answers`: its transcript was found to
 * answer its challenge.
 */
export function whatItProves(
  { challenge_sha256, judged_by }: Pick<Report, 'challenge_sha256' | 'judged_by'>,
  answers = false,
): string {
  return `the holder of the key says so${extentOf(challenge_sha256, judged_by, answers)}; only a run of your own cannot be invented`;
}

function extentOf(challenge: string | undefined, judgedBy: string | undefined, answers: boolean): string {
  const edited = judgedBy === undefined ? '' : ', of a transcript that could be edited';
  if (answers) return `${edited}, and it is not older than its challenge`;
  return challenge === undefined ? edited : `${edited}, for a challenge that \`verify --challenge\` compares`;
}
