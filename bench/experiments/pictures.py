"""Pictures of docs/results.md as SVG, without a library: coloured cells, and panels of lines."""
from xml.sax.saxutils import escape

COLORS = ("#1f5fa8", "#c2452d", "#3a8a4d", "#8a5aa8", "#b8860b", "#5b6770", "#d0609a", "#2a9d9d")
DASHES = ("", "7 3", "2 3", "9 3 2 3")


def document(width, height, title, parts):
    return "\n".join([f'<svg viewBox="0 0 {width:g} {height:g}" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12">',
                      f"<title>{escape(title)}</title>", f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>', *parts, "</svg>", ""])


def text(x, y, what, anchor="middle"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(what)}</text>'


def mixed(low, high, share):
    return "#%02x%02x%02x" % tuple(round(a + (b - a) * share) for a, b in zip(low, high))


def cell(x, y, size, color, what, remark):
    return [f'<rect x="{x:g}" y="{y:g}" width="{size[0] - 2:g}" height="{size[1] - 2:g}" fill="{color}"><title>{escape(remark)}</title></rect>',
            text(x + size[0] // 2 - 1, y + 14, what)]


# --- lines ---

PANEL, MARGIN, LEGEND = (380, 250), (56, 30, 14, 40), 22  # left, top, right, bottom


def steps(low, high):
    """Three to seven round numbers of an axis."""
    unit = 10.0 ** -6
    while (high - low) / unit > 70:
        unit *= 10
    for factor in (1, 2, 5, 10):
        if (high - low) / (unit * factor) <= 6:
            step = unit * factor
            break
    else:
        step = unit * 20
    first = -(-low // step)
    return [(first + i) * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


def panel(at, title, x_label, y_label, curves, y_range):
    """curves: name to [(x, y)]. Colours follow the order of names."""
    left, top = at[0] + MARGIN[0], at[1] + MARGIN[1]
    width, height = PANEL[0] - MARGIN[0] - MARGIN[2], PANEL[1] - MARGIN[1] - MARGIN[3]
    x_most = max(x for points in curves.values() for x, _ in points)
    low, high = y_range
    out = [text(left + width / 2, at[1] + 18, title), text(left + width / 2, at[1] + PANEL[1] - 6, x_label),
           f'<text x="{at[0] + 12:g}" y="{top + height / 2:g}" text-anchor="middle" transform="rotate(-90 {at[0] + 12:g} {top + height / 2:g})">{escape(y_label)}</text>']
    for y in steps(low, high):
        pixel = top + height * (high - y) / (high - low)
        out.append(f'<path d="M{left:g} {pixel:.1f}h{width:g}" stroke="#dddddd" fill="none"/>')
        out.append(text(left - 5, pixel + 4, f"{y:g}", "end"))
    for x in steps(0, x_most):
        pixel = left + width * x / x_most
        out.append(f'<path d="M{pixel:.1f} {top + height:g}v4" stroke="#444444" fill="none"/>')
        out.append(text(pixel, top + height + 16, f"{x:g}"))
    for i, points in enumerate(curves.values()):
        path = " ".join(f"{left + width * x / x_most:.1f},{top + height * (high - min(max(y, low), high)) / (high - low):.1f}" for x, y in points)
        out.append(f'<polyline points="{path}" fill="none" stroke-width="1.6" stroke="{COLORS[i % len(COLORS)]}" '
                   f'stroke-dasharray="{DASHES[i // len(COLORS) % len(DASHES)]}"/>')
    out.append(f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="none" stroke="#444444"/>')
    return out


def lines(title, panels, columns=2):
    """panels: (title, label of x, label of y, curves), drawn in rows with one range of y and one legend."""
    values = [y for *_, curves in panels for points in curves.values() for _, y in points]
    margin = (max(values) - min(values)) * 0.05 or 1
    y_range = min(values) - margin, max(values) + margin
    names = list(panels[0][3])
    out = []
    for i, (head, x_label, y_label, curves) in enumerate(panels):
        at = (i % columns * PANEL[0], LEGEND + i // columns * PANEL[1])
        out += panel(at, head, x_label, y_label, curves, y_range)
    width = PANEL[0] * min(columns, len(panels))
    for i, name in enumerate(names):
        x = 20 + i * (width - 40) / len(names)
        out.append(f'<path d="M{x:.1f} 12h18" stroke-width="2" stroke="{COLORS[i % len(COLORS)]}" stroke-dasharray="{DASHES[i // len(COLORS) % len(DASHES)]}"/>')
        out.append(text(x + 22, 16, name, "start"))
    return document(width, LEGEND + PANEL[1] * -(-len(panels) // columns), title, out)
