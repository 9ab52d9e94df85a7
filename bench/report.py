"""The table and the plot of run.py load."""
import math
import statistics

COLORS = {'limit': '#4a5568', 'ours': '#2b6cb0', 'peer': '#dd6b20'}


def quartile(numbers):
    """The lower one."""
    return statistics.quantiles(numbers, n=4, method='inclusive')[0] if len(numbers) > 1 else numbers[0]


def speed_of(run):
    return run['bytes'] / run['seconds'] / 1e9


def median_speed(runs):
    return runs[0]['bytes'] / statistics.median(run['seconds'] for run in runs) / 1e9


def q1_speed(runs):
    """GB/s at the lower quartile of the seconds: what the way does when it is disturbed little."""
    return runs[0]['bytes'] / quartile([run['seconds'] for run in runs]) / 1e9


def ratios(pairs, limit, limit_runs):
    """Times the speed of a limit: the median over the pairs, and from the quartiles of all runs of both."""
    return (statistics.median(speed_of(run) / speed_of(refs[limit]) for run, refs in pairs),
            q1_speed([run for run, _ in pairs]) / q1_speed(limit_runs[limit]))


def table(results, limits, limit_runs):
    """results: way -> pairs of a run and the runs of the limits right before it."""
    print('\n%-31s %7s %7s' % ('', 'GB/s', 'GB/s') + ''.join(' %16s' % ('x ' + limit) for limit in limits))
    print('%-31s %7s %7s' % ('way', 'median', 'q1') + ' %8s %7s' % ('pairs', 'q1') * len(limits) +
          ' %6s %11s %10s  %s' % ('cpu x', 'peak x size', 'beyond MiB', 'how'))
    for way, pairs in results.items():
        runs = [run for run, _ in pairs]
        line = '%-31s %7.2f %7.2f' % (way.about + (', A/A' if way.name in limits else ''), median_speed(runs), q1_speed(runs))
        for limit in limits:
            line += ' %8.2f %7.2f' % ratios(pairs, limit, limit_runs)
        work = statistics.median(run['cpu'] / run['bytes'] for run in runs)
        limit_work = statistics.median(run['cpu'] / run['bytes'] for run in limit_runs[limits[0]])
        peak = statistics.median(run['peak_kib'] for run in runs) * 1024
        print(line + ' %6s %11s %10s  %s' % ('%.2f' % (work / limit_work) if limit_work else '-', '%.2f' % (peak / runs[0]['bytes']) if peak else '-',
                                             '%.1f' % ((peak - runs[0]['bytes']) / 1048576) if peak else '-', runs[-1].get('detail', '')))
    print('\nA/A is a limit measured against itself: how far its ratios are from 1 is what noise makes of nothing.')
    for limit in limits:
        speeds = [speed_of(run) for run in limit_runs[limit]]
        print('%s: all %d runs %.2f to %.2f GB/s, median %.2f' % (limit, len(speeds), min(speeds), max(speeds), median_speed(limit_runs[limit])))
    parts = [run['cached'] for pairs in results.values() for run, refs in pairs for run in [run, *refs.values()]]
    print('page cache before the runs: %.1f to %.1f %% of the file' % (100 * min(parts), 100 * max(parts)))


def escape(text):
    return text.replace('&', '&amp;').replace('<', '&lt;')


def draw(path, results, limits, limit_runs, title):
    """For each way a dot at the median, a thick line between the quartiles, a thin one over all runs; the scale is logarithmic."""
    speeds = {}
    for way, pairs in results.items():  # slowest, the quartiles of the seconds, fastest
        seconds = [run['seconds'] for run, _ in pairs]
        found = [max(seconds), *(statistics.quantiles(seconds, n=4, method='inclusive') if len(seconds) > 1 else seconds * 3)[::-1], min(seconds)]
        speeds[way] = [pairs[0][0]['bytes'] / s / 1e9 for s in found]
    low = math.floor(math.log10(min(s[0] for s in speeds.values())) * 4) / 4
    high = max(math.ceil(math.log10(max(s[-1] for s in speeds.values())) * 4) / 4, low + 0.25)
    left, width, top, step = 230, 480, 62, 22
    bottom = top + step * len(speeds)

    def x(speed):
        return left + (math.log10(speed) - low) / (high - low) * width

    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="880" height="%d" font-family="sans-serif" font-size="12">' % (bottom + 40),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="20" font-size="14">%s</text>' % escape(title)]
    for k, (kind, name) in enumerate((('limit', 'limits'), ('ours', 'hurray'), ('peer', 'other packages'))):
        out.append('<circle cx="%d" cy="38" r="5" fill="%s"/><text x="%d" y="42">%s</text>' % (16 + 130 * k, COLORS[kind], 26 + 130 * k, name))
    out.append('<text x="410" y="42">dot: median; thick: quartiles; thin: all runs; dashed: %s, median</text>' % limits[0])
    for mark in (m * 10.0 ** e for e in range(-3, 4) for m in (1, 2, 5)):
        if low <= math.log10(mark) <= high:
            out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#e2e8f0"/>' % (x(mark), x(mark), top - 8, bottom))
            out.append('<text x="%.1f" y="%d" text-anchor="middle">%g</text>' % (x(mark), bottom + 14, mark))
    out.append('<text x="%d" y="%d" text-anchor="middle">GB/s</text>' % (left + width / 2, bottom + 32))
    at = x(median_speed(limit_runs[limits[0]]))
    out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-dasharray="4"/>' % (at, at, top - 8, bottom, COLORS['limit']))
    for k, (way, found) in enumerate(speeds.items()):
        y, color = top + step * k + 6, COLORS[way.kind]
        out.append('<text x="10" y="%d">%s</text>' % (y + 4, escape(way.about)))
        for begin, end, thick in ((found[0], found[4], 1.5), (found[1], found[3], 6)):
            out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-width="%g" stroke-opacity="0.6"/>' % (
                x(begin), x(end), y, y, color, thick))
        out.append('<circle cx="%.1f" cy="%d" r="5" fill="%s"/>' % (x(found[2]), y, color))
        out.append('<text x="%d" y="%d">%.2f GB/s, %.2f x limit</text>' % (left + width + 12, y + 4, found[2], ratios(results[way], limits[0], limit_runs)[0]))
    with open(path, 'w') as f:
        f.write('\n'.join(out) + '\n</svg>\n')
