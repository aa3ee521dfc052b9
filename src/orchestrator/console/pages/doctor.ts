import { actionForm } from '../../../operator-kit/console/action-pages.ts';
import { ago, facts, given, html, live, table } from '../../../operator-kit/console/parts.ts';
import { type DoctorReport, runDoctor } from '../../operate/doctor.ts';
import type { Page } from '../deps.ts';

type Finding = DoctorReport['findings'][number];

const ORDER = ['broken', 'warning', 'ok'] as const;

/** The findings of `berth doctor` as run by this server, broken ones first. */
export const doctorPage: Page = async ({ doctor, server }, { session, now }) => {
  const { begun_at: begunAt, ended_at: endedAt, findings } = doctor.report();
  const sorted = ORDER.flatMap((verdict) => findings.filter((one) => one.verdict === verdict));
  const count = (verdict: Finding['verdict']): number =>
    findings.filter((one) => one.verdict === verdict).length;
  const body = html`<h1>Doctor</h1>
${actionForm(
  runDoctor,
  session.csrf,
  {},
  {
    className: 'card row',
    buttonClass: 'primary',
    content: html`<p>Checks everything that this server needs: database, disk, clock, TLS, the requirements of each driver, and whether rows and machines agree. It changes nothing.</p>`,
  },
)}
${live(
  'doctor',
  html`${facts([
    ['Server', given(server)],
    ['Checked', begunAt === null ? 'not since its start' : ago(begunAt, now)],
    ['', begunAt !== null && endedAt === null ? 'Still checking: reload this page.' : ''],
    ['Broken', count('broken')],
    ['Warnings', count('warning')],
  ])}
${table(
  [
    'verdict',
    {
      head: 'Platform',
      cell: ({ platform }: Finding) => platform ?? html`<span class="soft">this server</span>`,
    },
    'subject',
    {
      head: 'Finding',
      cell: ({ finding, remedy }: Finding) =>
        html`${given(finding)}${remedy === null ? '' : html`<br><span class="small">→ ${given(remedy)}</span>`}`,
    },
  ],
  sorted,
  'No findings yet.',
)}`,
)}`;
  return { title: 'Doctor', body };
};
