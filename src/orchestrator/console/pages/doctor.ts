import { csrfField } from '../../../operators/console/layout.ts';
import { ago, badge, facts, given, html, live, table } from '../../../operators/console/parts.ts';
import type { DoctorReport } from '../../operate/doctor.ts';
import type { Page } from '../deps.ts';

type Finding = DoctorReport['findings'][number];

const TONES = { ok: 'good', warning: 'wait', broken: 'bad' } as const;
const ORDER = ['broken', 'warning', 'ok'] as const;

/** The findings of `berth doctor` as run by this server, broken ones first. */
export const doctorPage: Page = async ({ doctor, server }, { session, now }) => {
  const { begun_at: begunAt, ended_at: endedAt, findings } = doctor.report();
  const sorted = ORDER.flatMap((verdict) => findings.filter((one) => one.verdict === verdict));
  const count = (verdict: Finding['verdict']): number =>
    findings.filter((one) => one.verdict === verdict).length;
  const body = html`<h1>Doctor</h1>
<form class="card row" method="post" action="/console/doctor">${csrfField(session.csrf)}
<p>Everything that this server needs, looked at one by one: database, disk, clock, TLS, what each driver asks for, and whether the rows are as the machines. It changes nothing.</p>
<button class="primary">Look now</button></form>
${live(
  'doctor',
  html`${facts([
    ['Server', given(server)],
    ['Looked', begunAt === null ? 'not since its start' : ago(begunAt, now)],
    ['', begunAt !== null && endedAt === null ? 'It is still looking: read this page again.' : ''],
    ['Broken', count('broken')],
    ['To look at', count('warning')],
  ])}
${table(
  [
    { head: 'Verdict', cell: ({ verdict }: Finding) => badge(verdict, TONES[verdict]) },
    {
      head: 'Platform',
      cell: ({ platform }: Finding) => platform ?? html`<span class="soft">this server</span>`,
    },
    { head: 'What', cell: ({ subject }: Finding) => given(subject) },
    {
      head: 'Finding',
      cell: ({ finding, remedy }: Finding) =>
        html`${given(finding)}${remedy === null ? '' : html`<br><span class="small">→ ${given(remedy)}</span>`}`,
    },
  ],
  sorted,
  'Nothing is found yet.',
)}`,
)}`;
  return { title: 'Doctor', body };
};
